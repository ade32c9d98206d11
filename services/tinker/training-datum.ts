import type { TrainingDatum } from './wire/index.ts';

/** One shifted sequence; all lists have one length. Give the lists that the loss takes. */
export type LossRows = {
  readonly modelInput: Int32Array;
  readonly targetTokens: Int32Array;
  /** cross_entropy */
  readonly weights?: Float32Array;
  /** importance_sampling, ppo, cispo: nats under the weights that sampled. */
  readonly logprobs?: Float32Array;
  readonly advantages?: Float32Array;
};

/** The datum with the protocol's names; one that has them already is returned as it is. @throws RangeError when a list differs in length */
export function trainingDatum(datum: LossRows | TrainingDatum): TrainingDatum {
  if ('lossFnInputs' in datum) return datum;
  const { modelInput, targetTokens, weights, logprobs, advantages } = datum;
  const rows = { target_tokens: targetTokens, weights, logprobs, advantages };
  const lossFnInputs: Record<string, Int32Array | Float32Array> = {};
  for (const [name, row] of Object.entries(rows)) {
    if (row === undefined) continue;
    if (row.length !== modelInput.length) throw new RangeError(`${name} has ${row.length} entries for ${modelInput.length} input tokens`);
    lossFnInputs[name] = row;
  }
  return { modelInput, lossFnInputs };
}
