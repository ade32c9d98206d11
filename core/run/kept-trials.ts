import type { BlobRef } from '../ids.ts';
import type { EpisodeScore, TrialSummary } from './trial.ts';

/** A slot of a batch and what came of it; a trial that was tried again keeps its slot. Its score is null where there was nothing to score, or nobody to. */
export type PlayedSlot = { readonly slot: string; readonly trial: TrialSummary; readonly score: EpisodeScore | null };

/** Trials of a batch as they travel: lists of them in the blob store, and how many they are. A message stays small however large the batch is. */
export type KeptTrials = { readonly lists: readonly BlobRef[]; readonly count: number };

export const NO_KEPT_TRIALS: KeptTrials = { lists: [], count: 0 };

/** Trials of one list: as many as fit through one message several times over. */
export const MOST_IN_A_LIST = 128;
