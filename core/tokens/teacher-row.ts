import type { Datum } from './span.ts';
import { lossStretches } from './stretches.ts';
import { datumName, TokenError } from './token-error.ts';

/**
 * Keeps of a teacher's answer what training needs: the log-probabilities (nats) at loss positions; every other entry becomes NaN.
 * `row[p]` is ln p(token p | the tokens before it), one entry per token of the datum. Position 0 has nothing before it and is never kept.
 * @throws TokenError `length` when the row does not match the datum; `missing_at_loss_position` when a loss position has no finite value.
 */
export function keepTeacherRow(datum: Datum, row: ArrayLike<number | null | undefined>): Float64Array {
  const n = datum.tokens.length;
  if (row.length !== n) {
    throw new TokenError('length', datumName(datum), `the teacher returned ${row.length} log-probabilities for ${n} tokens`);
  }
  const kept = new Float64Array(n).fill(Number.NaN);
  const stretches = lossStretches(datum.mask);
  for (let s = 0; s < stretches.length; s += 2) {
    const to = stretches[s + 1] as number;
    for (let p = Math.max(1, stretches[s] as number); p < to; p++) {
      const logprob = row[p];
      if (typeof logprob !== 'number' || !Number.isFinite(logprob)) {
        const message = `the teacher's log-probability at loss position ${p} is ${logprob}; the step cannot be trained without it`;
        throw new TokenError('missing_at_loss_position', datumName(datum), message);
      }
      kept[p] = logprob;
    }
  }
  return kept;
}
