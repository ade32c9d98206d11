import { NOT_RUN } from './made.ts';
import type { StepRecord } from './recorder.ts';

/** A drive in one line. Steps that were left out do not count. */
export function summaryOf(steps: readonly StepRecord[], file: string): string {
  const notRun = steps.filter(({ error }) => error?.startsWith(NOT_RUN)).length;
  const failed = steps.filter(({ error }) => error !== undefined).length - notRun;
  const parts = [`${steps.length - failed - notRun} of ${steps.length} steps answered`, `${failed} refused or failed`];
  if (notRun > 0) parts.push(`${notRun} not run`);
  return `${parts.join(', ')} (see ${file})`;
}
