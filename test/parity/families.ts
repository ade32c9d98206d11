import type { TestFamily } from '../support/tokenizers.ts';

/** The moment that templates take for now, here and in the fixtures: half an hour before midnight in UTC. */
export const NOW_MS = Date.UTC(2026, 7, 9, 23, 30);

/** What parity is measured with. Where a vocabulary is another family's, only the template is new. */
export const PARITY_FAMILIES = {
  qwen3: { ownVocabulary: true },
  qwen3coder: { ownVocabulary: false },
  qwen35: { ownVocabulary: false },
  llama31: { ownVocabulary: true },
  gptoss: { ownVocabulary: true },
  deepseek_v3: { ownVocabulary: true },
  gemma3: { ownVocabulary: true },
} as const satisfies Partial<Record<TestFamily, { readonly ownVocabulary: boolean }>>;

export type ParityFamily = keyof typeof PARITY_FAMILIES;
