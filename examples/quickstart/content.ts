/** The quickstart's content: tasks, their splits, right and careless demonstrations, and how they read as text. Pure and seeded. */

export type { Turn } from './demonstrate.ts';
export { demonstrate, demonstrateSloppily, filesAfter, initialFiles, isSolved, MAX_ACTION_CHARS, MAX_TURNS } from './demonstrate.ts';
export type { EpisodeText } from './episode-text.ts';
export { episodeText, GENERATION_PROMPT } from './episode-text.ts';
export type { Rng } from './rng.ts';
export { createRng } from './rng.ts';
export type { SimFiles, SimResult } from './shell-sim.ts';
export { observationText, runSimulated } from './shell-sim.ts';
export type { Slip, Sloppiness } from './sloppiness.ts';
export { SLOPPINESS } from './sloppiness.ts';
export type { SplitName, SplitSizes } from './splits.ts';
export { DEFAULT_SIZES, pretrainingTasks, QUICKSTART_SEED, quickstartSplits, splitOf } from './splits.ts';
export type { QuickTask, Step, TaskKind } from './tasks.ts';
export { contentDigest, FILE_NAMES, promptText, TASK_KINDS } from './tasks.ts';
