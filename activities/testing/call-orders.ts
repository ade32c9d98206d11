import type { CallAnswer } from '../../core/recordings/entry.ts';
import type { CallOrder } from '../paid-calls.ts';

/** A call with so many prompt tokens: of the student a sample, of the teacher a score. */
export const order = (kind: 'sample' | 'score', promptTokens: number): CallOrder => ({
  kind,
  who: kind === 'sample' ? 'student' : 'teacher',
  key: `${kind} ${promptTokens}`,
  model: 'm',
  promptTokens,
  mostSampledTokens: kind === 'sample' ? 28 : 1,
});

/** Answers a call at once. */
export const answered = (sampledTokens: number) => async (): Promise<CallAnswer> => ({
  sampledTokens,
  cachedTokens: 0,
  resubmissions: 0,
  usable: true,
  detail: {},
  columns: [],
});
