import type { TrainedStep } from './lineage.ts';

type Row = { readonly step: number; readonly optimizer_updates: number; readonly loss_tokens: number; readonly context_tokens: number };

/** What the rows of `metrics.jsonl` say was trained. */
export const trainedSteps = (rows: readonly string[]): TrainedStep[] =>
  rows.map((row) => {
    const { step, optimizer_updates: updates, loss_tokens, context_tokens } = JSON.parse(row) as Row;
    return { step, updates, tokens: updates === 0 ? 0 : loss_tokens + context_tokens };
  });

/** Sums of the rows' numbers whose names speak of tokens that were replayed or bought again, by name. */
export function savedTokens(rows: readonly string[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const row of rows)
    for (const [name, value] of Object.entries(JSON.parse(row) as Record<string, unknown>))
      if (/replayed|rebought/.test(name) && typeof value === 'number') sums[name] = (sums[name] ?? 0) + value;
  return sums;
}
