import { seededRandom, seedFromName, shuffled } from '../random/seeded.ts';

/** Which loss the service is asked for, given the loss of the run: top-k distillation is a weighted cross-entropy on replicas. */
export function wireLoss(loss: 'importance_sampling' | 'ppo' | 'topk_ce'): 'importance_sampling' | 'ppo' | 'cross_entropy' {
  return loss === 'topk_ce' ? 'cross_entropy' : loss;
}

export type MinibatchPlan = {
  /** For every sequence of the batch, which source datum it comes from; replicas of one source are never split. */
  readonly sources: readonly number[];
  readonly numSubsteps: number;
  readonly runName: string;
  readonly step: number;
};

/**
 * Splits a batch into one optimizer update per chunk: exactly min(numSubsteps, sources) chunks whose source counts differ by one at most.
 * A chunk lists indices into `sources`. One substep keeps the batch order; more shuffle the sources, seeded by run name and step.
 */
export function planMinibatches({ sources, numSubsteps, runName, step }: MinibatchPlan): number[][] {
  if (!Number.isInteger(numSubsteps) || numSubsteps < 1) {
    throw new RangeError(`train.num_substeps must be a whole number of at least 1; got ${numSubsteps}`);
  }
  const groups = groupIndices(sources);
  const order = numSubsteps === 1 ? groups : shuffled(groups, seededRandom(seedFromName(`${runName}/minibatches/${step}`)));
  const updates = Math.min(numSubsteps, groups.length);
  const small = Math.floor(order.length / updates);
  const larger = order.length % updates;
  let from = 0;
  return Array.from({ length: updates }, (_, i) => {
    const chunk = order.slice(from, from + small + (i < larger ? 1 : 0));
    from += chunk.length;
    return chunk.flat();
  });
}

function groupIndices(sources: readonly number[]): number[][] {
  const groups = new Map<number, number[]>();
  sources.forEach((source, index) => {
    const group = groups.get(source);
    if (group) group.push(index);
    else groups.set(source, [index]);
  });
  return [...groups.values()];
}
