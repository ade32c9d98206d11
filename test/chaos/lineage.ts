import type { LoggedCall } from '../../trainer/service/call-log.ts';

/** One optimizer step that was applied to a model, with the gradients it used. */
export type Update = {
  readonly model: string;
  readonly seq: number;
  readonly gradients: readonly string[];
  readonly trainedTokens: number;
};

/** How a checkpoint came to be. */
export type Lineage = {
  /** Oldest first, over all models that lead to it. */
  readonly updates: readonly Update[];
  /** The models that lead to it, oldest first. */
  readonly models: readonly string[];
};

/** A checkpoint whose making the trainer's log does not show. */
export class UnknownLineage extends Error {}

/**
 * Walks from a checkpoint back to the model's creation: the calls of its model up to the save; where that model was loaded from another
 * checkpoint, that one's lineage comes before. @throws UnknownLineage
 */
export function lineageOf(calls: readonly LoggedCall[], checkpoint: string): Lineage {
  const done = calls.filter(({ failed }) => failed === null);
  const save = done.findLast(({ kind, weights }) => kind === 'save' && weights === checkpoint);
  if (save === undefined) throw new UnknownLineage(`the trainer's log has no save of ${checkpoint}`);
  const own = done.filter(({ owner, seq }) => owner === save.owner && seq < save.seq).sort((a, b) => a.seq - b.seq);
  const origin = own.findLastIndex(({ kind }) => kind === 'load' || kind === 'create');
  const begun = own[origin];
  if (begun === undefined) throw new UnknownLineage(`the trainer's log does not show how ${save.owner} began`);
  const before = begun.kind === 'load' && begun.weights !== null ? lineageOf(calls, begun.weights) : { updates: [], models: [] };
  const updates = updatesIn(own.slice(origin + 1));
  return { updates: [...before.updates, ...updates], models: [...before.models, save.owner] };
}

function updatesIn(calls: readonly LoggedCall[]): Update[] {
  const updates: Update[] = [];
  let gradients: LoggedCall[] = [];
  for (const call of calls) {
    if (call.kind === 'forward_backward') gradients.push(call);
    if (call.kind !== 'optim_step') continue;
    const trainedTokens = gradients.reduce((sum, { trained }) => sum + trained, 0);
    updates.push({ model: call.owner, seq: call.seq, gradients: gradients.map(({ digest }) => digest), trainedTokens });
    gradients = [];
  }
  return updates;
}

/** What the run's rows say was trained, in order. */
export type TrainedStep = { readonly step: number; readonly updates: number; readonly tokens: number };

/**
 * Where a lineage differs from what the run trained; empty when each of the run's updates is in it once and in order. Batches are known
 * by their digests, which no two batches share, and by their tokens.
 */
export function lineageFaults(lineage: Lineage, steps: readonly TrainedStep[]): string[] {
  const faults: string[] = [];
  const expected = steps.reduce((sum, { updates }) => sum + updates, 0);
  if (lineage.updates.length !== expected) faults.push(`${lineage.updates.length} updates in the lineage, ${expected} in the rows`);
  const seen = new Set<string>();
  for (const { model, seq, gradients } of lineage.updates) {
    if (gradients.length === 0) faults.push(`${model}:${seq} stepped without a gradient`);
    for (const digest of gradients) {
      if (seen.has(digest)) faults.push(`batch ${digest} is in the lineage twice (${model}:${seq})`);
      seen.add(digest);
    }
  }
  let at = 0;
  for (const { step, updates, tokens } of steps) {
    const own = lineage.updates.slice(at, at + updates);
    at += updates;
    const trained = own.reduce((sum, update) => sum + update.trainedTokens, 0);
    if (own.length === updates && trained !== tokens) faults.push(`step ${step}: ${trained} tokens in the lineage, ${tokens} in its row`);
  }
  return faults;
}
