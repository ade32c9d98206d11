/** `step-NNNN`: the name of a step's weights, child workflow and files. */
export const stepName = (step: number) => `step-${String(step).padStart(4, '0')}`;
