import type { SavedWeights } from '../run/results.ts';
import { stepOfName } from '../run/step-name.ts';
import type { PublishedSampler } from '../run/trial.ts';
import { alive, type CheckpointLedger, type LedgerEntry, type SavedPath } from './checkpoint-ledger.ts';
import { type CheckpointBook, type ResumePoint, resumePoint } from './checkpoints.ts';

/**
 * Why a checkpoint must stay. `last`: the newest training state, which a rebuild begins from. `resume`: where training would go on after a
 * tripwire stop, now or if the next step began one. `best`: of the best interim solve rate. `final`: what the run was for; `promoted` once
 * an adapter version names it. `in use`: steps or evaluations sample from it.
 */
export type Pin = 'in use' | 'last' | 'resume' | 'best' | 'final' | 'promoted';

export type Pins = ReadonlyMap<SavedPath, readonly Pin[]>;

/** What a run needs of its checkpoints now. */
export type Uses = {
  /** What is sampled from. */
  readonly sampler: PublishedSampler | null;
  /** What was published last. */
  readonly published: PublishedSampler | null;
  readonly savedState: SavedPath | null;
  readonly book: CheckpointBook;
  /** Where the run would go on if it were stopped now. */
  readonly resume: ResumePoint;
  readonly final: SavedWeights | null;
  /** An adapter version names the final weights. */
  readonly isPromoted: boolean;
};

/** Which checkpoints must stay, and why. Nothing that is gone is pinned. */
export function pinsOf(ledger: CheckpointLedger, uses: Uses): Pins {
  const there = alive(ledger);
  const wanted: readonly (readonly [Pin, SavedPath | null | undefined])[] = [
    ...finalPaths(uses).map((path) => [uses.isPromoted ? 'promoted' : 'final', path] as const),
    ['in use', uses.sampler?.path],
    ['in use', uses.published?.path],
    ['last', uses.savedState ?? newestState(there)?.path],
    ...resumePaths(uses).map((path) => ['resume', path] as const),
    ...there.filter(({ step }) => step === ledger.best?.step).map(({ path }) => ['best', path] as const),
  ];
  const pins = new Map<SavedPath, Pin[]>();
  const paths = new Set(there.map(({ path }) => path));
  for (const [pin, path] of wanted) {
    if (!path || !paths.has(path)) continue;
    const others = pins.get(path) ?? [];
    if (!others.includes(pin)) pins.set(path, [...others, pin]);
  }
  return pins;
}

const finalPaths = ({ final }: Uses): readonly SavedPath[] => (final === null ? [] : [final.statePath, final.samplerPath]);

/** What the next step samples from is bad if the step is: training would then go on from a state before it. */
function resumePaths({ resume, book, sampler }: Uses): readonly (SavedPath | null)[] {
  const before = sampler === null ? resume : resumePoint(book, stepOfName(sampler.version));
  return [resume, before].flatMap(({ latest, restoreFrom }) => [restoreFrom, latest?.samplerPath ?? null]);
}

const newestState = (there: readonly LedgerEntry[]) => there.findLast(({ kind }) => kind === 'state');

/** Whether a checkpoint is never to expire by us: what the run was for. */
export const isForGood = (pins: readonly Pin[] | undefined): boolean => pins?.some((pin) => pin === 'final' || pin === 'promoted') ?? false;
