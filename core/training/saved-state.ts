import type { StatePath } from '../ids.ts';
import { stepName } from '../run/step-name.ts';

/** A training state that a run saved, as the run's log of them has it. */
export type SavedState = {
  /** `step-NNNN` or `warmup…`; one that was saved again has a number behind it. */
  readonly name: string;
  readonly path: StatePath;
  /** Optimizer updates that it stands for. */
  readonly updates: number;
  readonly savedAtMs: number;
};

const STEP = /^step-(\d+)(?:-\d+)?$/;

/** The newest state that was saved under a name, whichever form of it is given: `step-3` is `step-0003`, and also what was saved again for it. */
export function stateNamed(states: readonly SavedState[], asked: string): SavedState | null {
  return states.findLast(({ name }) => plainName(name) === plainName(asked)) ?? null;
}

/** Names of the states, each once, in the order they were saved last. */
export const stateNames = (states: readonly SavedState[]): string[] =>
  [...new Set(states.toReversed().map(({ name }) => plainName(name)))].reverse();

function plainName(name: string): string {
  const step = STEP.exec(name)?.[1];
  return step === undefined ? name : stepName(Number(step));
}
