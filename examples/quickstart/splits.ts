import { createRng, hashText } from './rng.ts';
import type { QuickTask } from './tasks.ts';
import { contentDigest, drawTask, FILE_NAMES, TASK_KINDS } from './tasks.ts';

export type SplitName = 'holdout' | 'train' | 'pretraining';

/** The seed of the committed quickstart: which tasks are drawn, never which split an identity belongs to. */
export const QUICKSTART_SEED = 20;

/**
 * The split that owns a task's identity (kind, names in their roles, digits in their roles): a quarter held out, a quarter
 * trained on, the rest for pretraining. It depends on nothing else, so no seed can leak a held-out combination.
 */
export function splitOf(identity: string): SplitName {
  const quarter = quarterOf(identity);
  return quarter === 0 ? 'holdout' : quarter === 1 ? 'train' : 'pretraining';
}

/** 0–3. Plain deletion has one role, 24 identities in all, so these are dealt evenly instead of by chance. */
function quarterOf(identity: string): number {
  const [kind, name] = identity.split('|') as [string, string];
  return kind === 'delete' ? Math.floor((DELETE_ORDER.indexOf(name) * 4) / FILE_NAMES.length) : hashText(identity) % 4;
}

const DELETE_ORDER = [...FILE_NAMES].sort((a, b) => hashText(`delete|${a}`) - hashText(`delete|${b}`));

export type SplitSizes = { readonly trainPerKind: number; readonly holdoutPerKind: number };
export const DEFAULT_SIZES: SplitSizes = { trainPerKind: 32, holdoutPerKind: 6 };

/** Train and held-out tasks: the kinds in turn, no content twice, no held-out identity twice. */
export function quickstartSplits(
  seed: number = QUICKSTART_SEED,
  sizes: SplitSizes = DEFAULT_SIZES,
): { train: QuickTask[]; holdout: QuickTask[] } {
  return {
    train: drawSplit('train', hashText(`train ${seed}`), sizes.trainPerKind, contentDigest),
    holdout: drawSplit('holdout', hashText(`holdout ${seed}`), sizes.holdoutPerKind, (task) => task.identity),
  };
}

const MAX_DRAWS_PER_TASK = 10_000;

function drawSplit(split: SplitName, seed: number, perKind: number, keyOf: (task: QuickTask) => string): QuickTask[] {
  const stream = tasksOf(split, seed);
  const seen = new Set<string>();
  const ids = new Set<string>();
  const tasks: QuickTask[] = [];
  for (let round = 0; round < perKind; round++) {
    for (const kind of TASK_KINDS) {
      for (let draws = 0; ; draws++) {
        if (draws === MAX_DRAWS_PER_TASK) throw new Error(`${split}: there are not ${perKind} different "${kind}" tasks; ask for fewer`);
        const task = stream(kind);
        if (seen.has(keyOf(task)) || ids.has(task.id)) continue;
        seen.add(keyOf(task));
        ids.add(task.id);
        tasks.push(task);
        break;
      }
    }
  }
  return tasks;
}

/** Draws tasks of a kind until one belongs to the split. */
function tasksOf(split: SplitName, seed: number): (kind: QuickTask['kind']) => QuickTask {
  const rng = createRng(seed);
  return (kind) => {
    for (;;) {
      const task = drawTask(rng, kind);
      if (splitOf(task.identity) === split) return task;
    }
  };
}

/** An endless stream of pretraining tasks, the kinds in turn; its identities are never those of train or held-out tasks. */
export function* pretrainingTasks(seed: number): Generator<QuickTask, never, void> {
  const draw = tasksOf('pretraining', hashText(`pretraining ${seed}`));
  for (;;) for (const kind of TASK_KINDS) yield draw(kind);
}
