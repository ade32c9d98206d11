import { type SeededRandom, seededRandom, seedFromName, shuffled } from '../../core/random/seeded.ts';

export const TARGETS = ['worker', 'runner', 'trainer', 'temporal'] as const;
export type Target = (typeof TARGETS)[number];

export const SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGSTOP'] as const;
export type Signal = (typeof SIGNALS)[number];

/** When a kill comes: while trials are in flight, or while an optimizer step was carried out and its answer has not come. */
export type Moment = 'trials' | 'optim_step';

export type PlannedKill = {
  /** From 1. */
  readonly number: number;
  readonly target: Target;
  readonly signal: Signal;
  readonly moment: Moment;
  /** From the moment's beginning. */
  readonly delayMs: number;
};

/** Trials are in flight for seconds; the answer of an optimizer step is held back for `OPTIM_PENDING_MS`. */
const LONGEST_DELAY_MS: Readonly<Record<Moment, number>> = { trials: 2_000, optim_step: 800 };

/** The kills that follow from a seed: every target with every signal before one comes again, every other kill while an update is pending. */
export function scheduleOf(kills: number, seed: number): PlannedKill[] {
  const random = seededRandom(seedFromName(`chaos ${seed}`));
  const dealt = deal(kills, random);
  let pending = random.coin();
  const planned = dealt.map(({ target, signal }, index): PlannedKill => {
    // The runner has nothing to do while the weights are updated.
    const moment = target !== 'runner' && pending ? 'optim_step' : 'trials';
    if (target !== 'runner') pending = !pending;
    return { number: index + 1, target, signal, moment, delayMs: random.below(LONGEST_DELAY_MS[moment]) };
  });
  return withPendingUpdate(planned);
}

function deal(count: number, random: SeededRandom): { target: Target; signal: Signal }[] {
  const deck = TARGETS.flatMap((target) => SIGNALS.map((signal) => ({ target, signal })));
  const rounds = Array.from({ length: Math.ceil(count / deck.length) }, () => shuffled(deck, random));
  return rounds.flat().slice(0, count);
}

/** Few kills may all have been dealt elsewhere: the last one then is a worker's that waits for an update. */
function withPendingUpdate(planned: PlannedKill[]): PlannedKill[] {
  if (planned.some(({ moment }) => moment === 'optim_step')) return planned;
  return planned.map((kill, index) =>
    index < planned.length - 1
      ? kill
      : { ...kill, target: 'worker', moment: 'optim_step', delayMs: kill.delayMs % LONGEST_DELAY_MS.optim_step },
  );
}
