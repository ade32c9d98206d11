import type { InterimLabel } from './results.ts';

const digits = (step: number) => String(step).padStart(4, '0');

/** `step-NNNN`: the name of a step's weights, child workflow and files. */
export const stepName = (step: number) => `step-${digits(step)}`;

/** `interim-NNNN`: the evaluation of a step's weights on training tasks. */
export const interimLabel = (step: number): InterimLabel => `interim-${digits(step)}`;

/** The step that a name like `step-0007` stands for. @throws RangeError for any other name */
export const stepOfName = (name: string): number => stepIn(name, /^step-(\d{4,})$/);

/** The step that a label like `interim-0007` stands for. @throws RangeError for any other label */
export const stepOfInterim = (label: string): number => stepIn(label, /^interim-(\d{4,})$/);

function stepIn(name: string, pattern: RegExp): number {
  const found = pattern.exec(name)?.[1];
  if (found === undefined) throw new RangeError(`${name} is no name of a step`);
  return Number(found);
}
