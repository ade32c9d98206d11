import { type Chunk, chunksOf, type ForwardBackwardRequest, type TrainingDatum } from './forward-backward-request.ts';
import { asTensorValue, type TensorInput } from './tensor-values.ts';

/**
 * The JSON body that servers of before protobuf take: of `forward` when the request is forward-only, else of
 * `forward_backward`. Texts are joined straight from the typed arrays, so that a number is never an object of its own.
 * @throws RangeError for what JSON bodies have no form of: NaN, infinite numbers, provenance spans
 */
export function jsonForwardBackwardBody(request: ForwardBackwardRequest): string {
  const { modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly } = request;
  for (const [name, value] of Object.entries(lossFnConfig)) {
    if (typeof value === 'number') requireFinite(value, `loss_fn_config "${name}"`);
  }
  const config = Object.keys(lossFnConfig).length === 0 ? undefined : JSON.stringify(lossFnConfig);
  const input = object({ data: list(datums.map(datumJson)), loss_fn: JSON.stringify(lossFn), loss_fn_config: config });
  const name = forwardOnly ? 'forward_input' : 'forward_backward_input';
  return object({ [name]: input, model_id: JSON.stringify(modelId), seq_id: String(seqId) });
}

function datumJson(datum: TrainingDatum, index: number): string {
  const spans = [...(datum.modelInputSpans ?? []), ...(datum.lossFnInputSpans ?? [])];
  if (spans.length > 0) throw new RangeError(`datum ${index} has provenance spans, which a JSON body cannot carry`);
  const inputs = Object.entries(datum.lossFnInputs).map(([name, input]) => [name, tensorJson(input, `datum ${index}, ${name}`)] as const);
  return object({
    loss_fn_inputs: object(Object.fromEntries(inputs)),
    model_input: object({ chunks: list(chunksOf(datum).map(chunkJson)) }),
  });
}

function chunkJson(chunk: Chunk): string {
  switch (chunk.type) {
    case 'encoded_text':
      return object({ tokens: array(chunk.tokens), type: '"encoded_text"' });
    case 'image': {
      const { data, format, expectedTokens } = chunk;
      const expected = expectedTokens === undefined ? undefined : String(expectedTokens);
      return object({ data: base64(data), format: JSON.stringify(format), expected_tokens: expected, type: '"image"' });
    }
    case 'dmel':
      return object({ dmel: base64(chunk.dmel), type: '"dmel"' });
  }
}

function tensorJson(input: TensorInput, where: string): string {
  const { values, shape, sparse } = asTensorValue(input);
  if (values instanceof Float32Array) for (const value of values) requireFinite(value, where);
  return object({
    data: array(values),
    dtype: values instanceof Float32Array ? '"float32"' : '"int64"',
    shape: array(shape),
    sparse_crow_indices: sparse && array(sparse.crowIndices),
    sparse_col_indices: sparse && array(sparse.colIndices),
  });
}

function requireFinite(value: number, where: string): void {
  if (!Number.isFinite(value)) throw new RangeError(`${where} holds ${value}, which a JSON body cannot carry`);
}

/** Of members that are JSON text already; undefined ones are left out. */
function object(members: Readonly<Record<string, string | undefined>>): string {
  return `{${Object.entries(members)
    .filter(([, text]) => text !== undefined)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(',')}}`;
}

function list(items: readonly string[]): string {
  return `[${items.join(',')}]`;
}

function array(values: { join(separator: string): string }): string {
  return `[${values.join(',')}]`;
}

function base64(bytes: Uint8Array): string {
  return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}"`;
}
