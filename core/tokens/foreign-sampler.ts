import type { Episode } from './span.ts';
import { TokenError } from './token-error.ts';

/**
 * Refuses an episode that was not sampled, call by call, from the weights named `version`: its log-probabilities are those of another model.
 * @throws TokenError `foreign_sampler` naming the first call that was not.
 */
export function refuseForeign({ trial, spans }: Episode, version: string): void {
  const foreign = spans.find(({ sampler }) => sampler !== version);
  if (foreign)
    throw new TokenError(
      'foreign_sampler',
      `trial ${trial}, call ${foreign.callIndex}`,
      `sampled from ${foreign.sampler}, not from ${version}`,
    );
}
