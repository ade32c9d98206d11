import type { Datum } from './span.ts';
import { datumName, TokenError } from './token-error.ts';

export type PolicyLoss = 'importance_sampling' | 'ppo';

/**
 * A datum as the training service takes it: shifted, so that entry i of every list speaks about predicting `targetTokens[i]` from
 * `modelInput[0..i]`. A datum of n tokens gives lists of n − 1. Token lists are views of the datum's own array: copy before changing.
 */
export type PolicyWire = {
  readonly modelInput: Int32Array;
  readonly targetTokens: Int32Array;
  readonly logprobs: Float32Array;
  readonly advantages: Float32Array;
};
export type CrossEntropyWire = {
  readonly modelInput: Int32Array;
  readonly targetTokens: Int32Array;
  readonly weights: Float32Array;
};

/**
 * Wire lists of a batch. The policy losses need one unshifted advantage array per datum; `cross_entropy` weighs each loss token 1.
 * @throws TokenError `too_short` for a datum of fewer than two tokens; `no_advantages` when an advantage array is missing;
 *   `length` when one does not match its datum.
 */
export function toWire(loss: PolicyLoss, datums: readonly Datum[], advantages: readonly (Float64Array | undefined)[]): PolicyWire[];
export function toWire(loss: 'cross_entropy', datums: readonly Datum[]): CrossEntropyWire[];
export function toWire(
  loss: PolicyLoss | 'cross_entropy',
  datums: readonly Datum[],
  advantages: readonly (Float64Array | undefined)[] = [],
): (PolicyWire | CrossEntropyWire)[] {
  if (loss === 'cross_entropy')
    return datums.map((datum) => ({ ...shiftTokens(datum), weights: Float32Array.from(datum.mask.subarray(1)) }));
  return datums.map((datum, i) => {
    const own = advantages[i];
    if (!own) throw new TokenError('no_advantages', datumName(datum), `loss ${loss} needs advantages; compute them before encoding`);
    if (own.length !== datum.tokens.length) {
      throw new TokenError('length', datumName(datum), `${own.length} advantages for ${datum.tokens.length} tokens`);
    }
    return { ...shiftTokens(datum), logprobs: new Float32Array(datum.logprobs.subarray(1)), advantages: new Float32Array(own.subarray(1)) };
  });
}

/** Model input and targets of one sequence: the same tokens, one apart. */
export function shiftTokens(datum: Pick<Datum, 'trial' | 'fragment' | 'tokens'>): { modelInput: Int32Array; targetTokens: Int32Array } {
  const n = datum.tokens.length;
  if (n < 2)
    throw new TokenError('too_short', datumName(datum), `${n} token(s); a sequence needs two, one to predict from and one to predict`);
  return { modelInput: datum.tokens.subarray(0, n - 1), targetTokens: datum.tokens.subarray(1) };
}
