export { collect } from './collect.ts';
export { distill } from './distill.ts';
export { evaluate } from './evaluate.ts';
export { step } from './step.ts';
export { tidyCheckpoints } from './tidy-checkpoints.ts';
