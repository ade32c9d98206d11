import type { StepName } from './step-names.ts';

/** What a step brought for later ones; null when it was skipped or failed. */
export type StepValue<T> = { readonly step: StepName; readonly value: T | null };

/** How the error of a step begins that asked the service for nothing. */
export const NOT_RUN = 'not run: ';

/** A step that asked the service for nothing, because an earlier one brought nothing. */
export class NotRun extends Error {
  constructor(needed: StepName) {
    super(`${NOT_RUN}it needs ${needed}`);
    this.name = 'NotRun';
  }
}

/** @throws NotRun when the step brought nothing */
export function made<T>({ step, value }: StepValue<T>): T {
  if (value === null) throw new NotRun(step);
  return value;
}
