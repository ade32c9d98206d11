import { z } from 'zod';

/** A run's files that do not say what was spent. Nothing may be spent on a guess. */
export class SpendUnreadable extends Error {
  override readonly name = 'SpendUnreadable';
  readonly kind: 'corrupt_row' | 'corrupt_ledger';

  constructor(kind: SpendUnreadable['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

export type RecordedRows = { readonly usd: number; readonly lastStep: number | null };

const Row = z.looseObject({ step: z.unknown().optional(), usd: z.unknown().optional() });
const Ledger = z.looseObject({ total_usd: z.number().min(0) });

/**
 * USD of the rows of a `metrics.jsonl`, and the highest step in it. A step that was written again counts once, as it was written last;
 * rows without a numeric `usd` add nothing. @throws SpendUnreadable for a line that is not a row
 */
export function spendOfRows(metricsJsonl: string): RecordedRows {
  const byStep = new Map<number, number>();
  const steps: number[] = [];
  let unnumberedUsd = 0;
  for (const [index, line] of metricsJsonl.split('\n').entries()) {
    if (line.trim() === '') continue;
    const row = Row.safeParse(asJson(line));
    if (!row.success) throw new SpendUnreadable('corrupt_row', `metrics.jsonl line ${index + 1} is not a row: ${line.slice(0, 80)}`);
    const { step, usd } = row.data;
    const numbered = typeof step === 'number' && Number.isInteger(step);
    if (numbered) steps.push(step);
    if (typeof usd !== 'number') continue;
    if (numbered) byStep.set(step, usd);
    else unnumberedUsd += usd;
  }
  const usd = [...byStep.values()].reduce((sum, value) => sum + value, unnumberedUsd);
  return { usd, lastStep: steps.length === 0 ? null : steps.reduce((a, b) => Math.max(a, b)) };
}

/** `total_usd` of a `spend.json`. @throws SpendUnreadable when it has none */
export function spendOfLedger(spendJson: string): number {
  const ledger = Ledger.safeParse(asJson(spendJson));
  if (!ledger.success) throw new SpendUnreadable('corrupt_ledger', 'spend.json needs total_usd, a number of 0 or more');
  return ledger.data.total_usd;
}

/** What a run had spent, in USD: its ledger knows more than its rows, baselines and warm-up too. */
export function priorSpendUsd(rows: RecordedRows, ledgerUsd: number | null): number {
  return ledgerUsd ?? rows.usd;
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
