import type { RunConfig } from '../config/schema.ts';
import type { StatePath } from '../ids.ts';
import type { TrainingBase } from '../training/checkpoint-ledger.ts';
import { type SavedState, stateNamed, stateNames } from '../training/saved-state.ts';
import { some } from './task-ids.ts';

/** Saved training state that a run starts from, instead of a fresh adapter. */
export type Branch = {
  readonly statePath: StatePath;
  /** Optimizer updates that the state stands for; 0 where it was named by its path alone. */
  readonly updates: number;
  /** Whose it is, and its name there; null where it was named by its path alone. */
  readonly source: { readonly runId: string; readonly executionId: string; readonly state: string; readonly savedAtMs: number } | null;
};

/** A task and the digest of what it asks and checks, whatever it is called. */
export type TaskContent = { readonly id: string; readonly contentDigest: string };

/** What a run that is branched from has left in the store. */
export type BranchSource = {
  readonly runId: string;
  readonly executionId: string;
  readonly config: SourceConfig;
  readonly train: readonly TaskContent[];
  /** What it started from itself. */
  readonly branch: Branch | null;
  /** In the order they were saved. */
  readonly states: readonly SavedState[];
  /** Of a run that its tripwire stopped: the state from before the degeneration, null where none was saved. Null for any other run. */
  readonly tripped: { readonly restoreFrom: string | null } | null;
};

/** What of its config must be the same. */
export type SourceConfig = {
  readonly student: { readonly base_model: string; readonly lora_rank: number };
  readonly rollout: { readonly renderers: Readonly<Record<string, string>> };
};

/** Reads what the store keeps of a run. `unknown`: no run ever had the id here; `collected`: nothing but its id is left. */
export type LoadSource = (runId: string) => Promise<BranchSource | 'unknown' | 'collected'>;

export type FoundBranch = {
  readonly branch: Branch;
  /** Tasks that the weights were trained on, by the runs that are known, the nearest first. */
  readonly trainedBy: readonly Pick<BranchSource, 'runId' | 'train'>[];
  readonly warnings: readonly string[];
};

/** Nothing to start from, or nothing that fits. */
export class BranchRefused extends Error {
  override readonly name = 'BranchRefused';
}

type From =
  | { readonly kind: 'path'; readonly path: StatePath }
  | { readonly kind: 'run'; readonly runId: string; readonly state: string | null };

/** `RUN`, `RUN@step-N` or `tinker://<model>/weights/<name>`. @throws BranchRefused for anything else */
export function parseFrom(given: string): From {
  if (/^tinker:\/\/[^/?#\s]+\/weights\/[^/?#\s]+$/.test(given)) return { kind: 'path', path: given as StatePath };
  if (given.includes('://')) {
    const sampled = given.includes('/sampler_weights/') ? ': sampler weights can be sampled from, not trained on' : '';
    throw new BranchRefused(`${given} names no training state (tinker://<model>/weights/<name>)${sampled}`);
  }
  const [, runId, state] = /^([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:@([A-Za-z0-9._-]+))?$/.exec(given) ?? [];
  if (runId === undefined)
    throw new BranchRefused(`${JSON.stringify(given)} must be a run's id, RUN@step-N, or tinker://<model>/weights/<name>`);
  return { kind: 'run', runId, state: state ?? null };
}

/**
 * Finds the state that `given` names: of a run its last saved one, also while it goes on; of one that its tripwire stopped, the one from
 * before. @throws BranchRefused where there is none, or the config asks for another student; and whatever `load` throws
 */
export async function findBranch(given: string, config: RunConfig, load: LoadSource): Promise<FoundBranch> {
  const from = parseFrom(given);
  refuseWarmup(config);
  if (from.kind === 'path') {
    const unknown = `nobody knows what ${from.path} was trained on: held-out tasks that it has seen would make the result look better than it is`;
    return { branch: { statePath: from.path, updates: 0, source: null }, trainedBy: [], warnings: [unknown] };
  }
  const source = await load(from.runId);
  if (source === 'unknown') throw new BranchRefused(`the store knows no run ${from.runId}`);
  if (source === 'collected') throw new BranchRefused(`the store keeps nothing of run ${from.runId} any more; ${NAME_THE_PATH}`);
  const problems = differences(config, source);
  if (problems.length > 0) throw new BranchRefused(problems.join('; '));
  const { name: state, path: statePath, updates, savedAtMs } = stateIn(source, from.state);
  const { runId, executionId } = source;
  return { branch: { statePath, updates, source: { runId, executionId, state, savedAtMs } }, ...(await ancestry(source, load)) };
}

const NAME_THE_PATH = 'if its weights are still on the training service, name them by their path (tinker://…/weights/…)';

/** A warm-up teaches a fresh adapter to speak like the teacher; these weights have been trained. */
function refuseWarmup({ warmup: { steps } }: RunConfig): void {
  if (steps > 0) throw new BranchRefused(`warmup.steps is ${steps}, and a warm-up is for a fresh adapter only: set it to 0`);
}

function differences(config: RunConfig, { runId, config: trained }: BranchSource): string[] {
  const { base_model: model } = trained.student;
  const fields: readonly (readonly [field: string, own: string | number | undefined, theirs: string | number | undefined])[] = [
    ['student.base_model', config.student.base_model, model],
    ['student.lora_rank', config.student.lora_rank, trained.student.lora_rank],
    ...(config.student.base_model === model
      ? ([[`rollout.renderers.${JSON.stringify(model)}`, config.rollout.renderers[model], trained.rollout.renderers[model]]] as const)
      : []),
  ];
  const shown = (value: string | number | undefined) => (value === undefined ? 'not set' : JSON.stringify(value));
  return fields.flatMap(([field, own, theirs]) =>
    own === theirs ? [] : [`${field} is ${shown(own)} and was ${shown(theirs)} in ${runId}: it must be the same`],
  );
}

function stateIn({ runId, states, tripped }: BranchSource, asked: string | null): SavedState {
  const names = stateNames(states);
  if (names.length === 0) throw new BranchRefused(`run ${runId} has saved no training state`);
  if (asked !== null) {
    const found = stateNamed(states, asked);
    if (found) return found;
    throw new BranchRefused(`run ${runId} has saved no state ${asked}; it has saved ${names.join(', ')}`);
  }
  const wanted = tripped === null ? states.at(-1) : states.findLast(({ path }) => path === tripped.restoreFrom);
  if (wanted) return wanted;
  throw new BranchRefused(
    `run ${runId} was stopped by its tripwire, and saved no state before that; name one of ${names.join(', ')} (${runId}@${names.at(-1)}) to use it all the same`,
  );
}

/** The source, and what it was branched from in turn, as far back as the store knows. */
async function ancestry(source: BranchSource, load: LoadSource): Promise<Pick<FoundBranch, 'trainedBy' | 'warnings'>> {
  const trainedBy = [source];
  for (let { branch } = source; branch !== null; ) {
    const before = branch.source === null ? 'unknown' : await load(branch.source.runId);
    if (typeof before === 'string') {
      const warning = `${trainedBy.at(-1)?.runId} started from ${branchText(branch)}, and what that was trained on is not known here: held-out tasks that it has seen would make the result look better than it is`;
      return { trainedBy, warnings: [warning] };
    }
    trainedBy.push(before);
    ({ branch } = before);
  }
  return { trainedBy, warnings: [] };
}

/** A branch as a person reads it. */
export const branchText = ({ source, statePath }: Branch): string =>
  source === null ? statePath : `${source.state} of run ${source.runId} (${statePath})`;

/** The same as what a rebuild can start from, before the run's first step. */
export const startOf = ({ source, statePath }: Branch): TrainingBase => ({
  name: source === null ? 'that it started from' : `${source.state} of run ${source.runId}`,
  step: 0,
  path: statePath,
});

/** Why these held-out tasks cannot judge the weights: they were trained on, by id or by content. Null when they can. */
export function seenProblem(
  trainedBy: FoundBranch['trainedBy'],
  holdout: readonly (Pick<TaskContent, 'id'> & Partial<TaskContent>)[],
): string | null {
  const seen = trainedBy.flatMap(({ runId, train }) => {
    const ids = new Set(train.map(({ id }) => id));
    const twins = new Map(train.map(({ contentDigest, id }) => [contentDigest, id]));
    return holdout.flatMap(({ id, contentDigest }) => {
      const twin = ids.has(id) ? id : contentDigest === undefined ? undefined : twins.get(contentDigest);
      return twin === undefined ? [] : [twin === id ? `${id} (run ${runId})` : `${id} = ${twin} (run ${runId})`];
    });
  });
  if (seen.length === 0) return null;
  return `these weights were trained on held-out tasks: ${some(seen)}. Hold out tasks that they have not seen`;
}
