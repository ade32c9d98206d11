import { fromBinary } from '@bufbuild/protobuf';
import { decompressBody } from '../../services/tinker/wire/index.ts';
import { ForwardBackwardRequestSchema } from '../../services/tinker/wire/tinker_public_pb.ts';
import { MAX_BODY_BYTES } from '../service/http/bodies.ts';
import { readAddress } from '../service/loss-batch.ts';
import type { RequestType } from './plan.ts';

/** One request as the rules see it, whether or not the service would take it. */
export type Call = {
  readonly method: string;
  /** Below `/api/v1/`. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The body of a forward_backward, unpacked; null for other calls and when it cannot be unpacked. */
  readonly message: Uint8Array | null;
  /** The fields of a JSON body; none when it has another form. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly type: RequestType | null;
  readonly session: string | null;
  readonly model: string | null;
  /** The future that the call is about. */
  readonly requestId: string | null;
};

/** `typeOf` knows the types of futures that were promised before. */
export async function readCall(request: Request, path: string, typeOf: (requestId: string) => RequestType | undefined): Promise<Call> {
  const body = new Uint8Array(await request.arrayBuffer());
  const json = jsonFields(body);
  const { method, headers } = request;
  const message = path === 'forward_backward' ? await unpacked(headers, body) : null;
  const loss = message && parsed(() => readAddress(message));
  const requestId = typeof json.request_id === 'string' ? json.request_id : null;
  const [place = '', placeId = ''] = path.split('/');
  const named = [json.model_id, json.session_id, json.sampling_session_id, requestId, loss?.modelId];
  const ids = [...named, place === 'sessions' || place === 'samplers' ? placeId : null].filter((id) => typeof id === 'string' && id !== '');
  const type = requestId === null ? submittedType(path, loss?.forwardOnly === true) : (typeOf(requestId) ?? polledType(headers, requestId));
  return {
    method,
    path,
    headers,
    body,
    message,
    json,
    requestId,
    type,
    session: firstMatch(ids, /^[^:]+/),
    model: firstMatch(ids, /^[^:]+:train:\d+/),
  };
}

/** The tokens that a call needs room for: of a prompt and what may follow it, or of the longest training sequence. Null for other calls. */
export function contextTokens(call: Call): { readonly total: number; readonly words: string } | null {
  if (call.path === 'forward_backward') return longestSequence(call);
  if (call.path !== 'asample') return null;
  const chunks = (call.json.prompt as { chunks?: readonly { tokens?: readonly number[] }[] } | undefined)?.chunks ?? [];
  const prompt = chunks.reduce((sum, chunk) => sum + (chunk.tokens?.length ?? 0), 0);
  const asked = (call.json.sampling_params as { max_tokens?: number | null } | undefined)?.max_tokens ?? 1;
  // A prompt that is only scored may fill the context to its end.
  const more = call.json.prompt_logprobs === true && asked === 1 ? 0 : asked;
  return { total: prompt + more, words: `prompt (${prompt}) and max_tokens (${asked})` };
}

function longestSequence({ message }: Call): { readonly total: number; readonly words: string } | null {
  const request = message && parsed(() => fromBinary(ForwardBackwardRequestSchema, message));
  if (request === null) return null;
  const lengths = request.data.map(({ modelInput }) =>
    modelInput.reduce((sum, { chunk }) => sum + (chunk.case === 'encodedText' ? chunk.value.tokens.byteLength / 4 : 0), 0),
  );
  const total = Math.max(0, ...lengths);
  return { total, words: `data[${lengths.indexOf(total)}] (${total})` };
}

function jsonFields(body: Uint8Array): Readonly<Record<string, unknown>> {
  const value: unknown = parsed(() => JSON.parse(new TextDecoder().decode(body)));
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** Null for a body of another form than its call has: the service itself says so. */
function parsed<T>(parse: () => T): T | null {
  try {
    return parse();
  } catch {
    return null;
  }
}

async function unpacked(headers: Headers, body: Uint8Array): Promise<Uint8Array | null> {
  if (headers.get('content-encoding') !== 'zstd') return body;
  return decompressBody(body, MAX_BODY_BYTES).catch(() => null);
}

const TYPE_OF_CALL: Readonly<Record<string, RequestType>> = {
  create_model: 'CreateModel',
  optim_step: 'OptimStep',
  save_weights: 'SaveWeights',
  save_weights_for_sampler: 'SaveWeightsForSampler',
  save_weights_external: 'SaveWeightsExternal',
  load_weights: 'LoadWeights',
  unload_model: 'UnloadModel',
  asample: 'Sample',
};

function submittedType(path: string, isForwardOnly: boolean): RequestType | null {
  if (path === 'forward_backward') return isForwardOnly ? 'Forward' : 'ForwardBackward';
  return TYPE_OF_CALL[path] ?? null;
}

/** Of a future promised before this process began: as the client says, else as its id tells. */
function polledType(headers: Headers, requestId: string): RequestType | null {
  const told = headers.get('x-tinker-request-type');
  if (told !== null) return told as RequestType;
  return /:sample:\d+:\d+$/.test(requestId) ? 'Sample' : null;
}

function firstMatch(ids: readonly unknown[], pattern: RegExp): string | null {
  return ids.map((id) => pattern.exec(String(id))?.[0]).find((found) => found !== undefined) ?? null;
}
