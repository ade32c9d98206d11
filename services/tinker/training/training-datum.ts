import { BadRequest } from '../errors.ts';
import { asTensorValue, chunksOf, type ProvenanceSpan, type TrainingDatum } from '../wire/index.ts';

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

/**
 * The datum with the protocol's names; one that has them already is returned as it is.
 * @throws BadRequest when a list differs in length, or when spans do not tile their field
 */
export function trainingDatum(datum: LossRows | TrainingDatum): TrainingDatum {
  if ('lossFnInputs' in datum) {
    requireTiling(datum);
    return datum;
  }
  const { modelInput, targetTokens, weights, logprobs, advantages } = datum;
  const rows = { target_tokens: targetTokens, weights, logprobs, advantages };
  const lossFnInputs: Record<string, Int32Array | Float32Array> = {};
  for (const [name, row] of Object.entries(rows)) {
    if (row === undefined) continue;
    if (row.length !== modelInput.length) throw unfit(`${name} has ${row.length} entries for ${modelInput.length} input tokens`);
    lossFnInputs[name] = row;
  }
  return { modelInput, lossFnInputs };
}

/** As far as lengths are known here: only the service knows how many positions an image takes. */
function requireTiling(datum: TrainingDatum): void {
  const { modelInputSpans, lossFnInputSpans } = datum;
  if (modelInputSpans === undefined && lossFnInputSpans === undefined) return;
  if (modelInputSpans === undefined || lossFnInputSpans === undefined) {
    throw unfit('a datum gives the provenance of its model input and of its loss inputs, or of neither');
  }
  const chunks = chunksOf(datum);
  const isText = chunks.every(({ type }) => type === 'encoded_text');
  const inputTokens = chunks.reduce((sum, chunk) => sum + (chunk.type === 'encoded_text' ? chunk.tokens.length : 0), 0);
  if (isText) requireLength('modelInputSpans', modelInputSpans, inputTokens);
  const targets = datum.lossFnInputs.target_tokens;
  const targetShape = targets === undefined ? [] : asTensorValue(targets).shape;
  if (targetShape.length === 1) requireLength('lossFnInputSpans', lossFnInputSpans, targetShape[0] ?? 0);
}

function requireLength(name: string, spans: readonly ProvenanceSpan[], expected: number): void {
  const covered = spans.reduce((sum, { length }) => sum + length, 0);
  if (covered !== expected) throw unfit(`${name} cover ${covered} positions of ${expected}`);
}

function unfit(message: string): BadRequest {
  return new BadRequest(message, { call: 'trainingDatum' });
}
