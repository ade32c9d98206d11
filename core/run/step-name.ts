/** `step-NNNN`: the name of a step's weights, child workflow and files. */
export const stepName = (step: number) => `step-${String(step).padStart(4, '0')}`;

/** The step that a name like `step-0007` stands for. @throws RangeError for any other name */
export function stepOfName(name: string): number {
  const digits = /^step-(\d{4,})$/.exec(name)?.[1];
  if (digits === undefined) throw new RangeError(`${name} is no name of a step`);
  return Number(digits);
}
