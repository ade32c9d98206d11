import { BillingPaused, TinkerError } from '../services/tinker/index.ts';

/**
 * The protocol has no code for a prompt that is too long: services say it in words. Those of the hosted service and of the embedded one
 * speak of a context; those of engines behind open servers (vLLM, SGLang) of a maximum length of the model, too.
 */
const TOO_LONG = [
  /\bcontext[ _](length|window|size|limit)/i,
  /\bcontext of \d/i,
  /\b(maximum|max)[ _](allowed |model |sequence |seq |total )?(len|length)\b.*\b(exceed|longer|greater|more|larger)|\b(exceeds?|longer than|greater than|more than|larger than)\b.*\b(maximum|max)[ _](allowed |model |sequence |seq )?(len|length)\b/i,
  /\bmax_(model|seq)_len\b/i,
  /\b(prompt|input|sequence|request) (is )?too (long|many tokens)/i,
];

/** How the limit stands in such words. */
const LIMIT = [
  /\bcontext (?:length|window|size|limit)(?: \w+)? (?:is|of|is only) (\d+)/i,
  /\bcontext (?:length|window|size|limit) ?[(=:] ?(\d+)/i,
  /\bcontext of (\d+)(?!\d* tokens, more)/i,
  /\bmore than the (\d+)/i,
  /\b(?:maximum|max)[ _](?:allowed |model |sequence )?(?:len|length)(?: is| of|:|=| \() ?(\d+)/i,
  /> ?(\d+) maximum/i,
];

/** Whether a failed call was refused for its length; `limitTokens` is null where its words do not name the limit. */
export function overflowIn(error: unknown): { readonly limitTokens: number | null } | null {
  if (!(error instanceof TinkerError) || error instanceof BillingPaused) return null;
  const words = error.detail ?? error.message;
  if (!TOO_LONG.some((pattern) => pattern.test(words))) return null;
  const [limit] = LIMIT.flatMap((pattern) => pattern.exec(words)?.[1] ?? []);
  return { limitTokens: limit === undefined ? null : Number(limit) };
}

/** The same failure, as one of a call that nothing was done for: a prompt that is too long is not sampled from, and not charged. */
export function refusedAsTooLong(error: unknown): never {
  throw overflowIn(error) && error instanceof TinkerError ? error.as({ fate: 'refused' }) : error;
}
