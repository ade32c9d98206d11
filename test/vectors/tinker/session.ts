import { forwardBackwardOf, sampleOf } from '../../../services/tinker/futures/decode-result.ts';
import type { Future, RequestType } from '../../../services/tinker/futures/futures.ts';
import type { ForwardBackwardOutput, SampleResponse } from '../../../services/tinker/wire/index.ts';

/** One recorded exchange of a session with an open server; binary bodies are `{base64}`. */
export type Exchange = {
  readonly path: string;
  readonly req_headers: Readonly<Record<string, string>>;
  readonly req: unknown;
  readonly req_decoded?: unknown;
  readonly status: number;
  readonly res: unknown;
  readonly res_decoded?: unknown;
};

export type Result = { readonly loss: ForwardBackwardOutput } | { readonly sample: SampleResponse };

/** What our client makes of a loss's or a sample's result, protobuf or JSON; null for every other exchange. */
export function resultOf({ path, req_headers, status, res }: Exchange): Result | null {
  const type = req_headers['x-tinker-request-type'] as RequestType | undefined;
  if (!path.endsWith('/retrieve_future') || status !== 200 || type === undefined || isPending(res)) return null;
  const future: Future = { requestId: 'recorded', type, subject: 'other', roundTripMs: 0 };
  const bytes = binary(res);
  const raw = bytes === null ? { json: res } : { protobuf: bytes };
  if (type === 'Sample') return { sample: sampleOf(raw, future) };
  return type === 'Forward' || type === 'ForwardBackward' ? { loss: forwardBackwardOf(raw, future) } : null;
}

export function binary(body: unknown): Uint8Array | null {
  const base64 = (body as { base64?: string } | null)?.base64;
  return base64 === undefined ? null : new Uint8Array(Buffer.from(base64, 'base64'));
}

function isPending(body: unknown): boolean {
  const { type, status, error } = (body ?? {}) as { type?: string; status?: string; error?: unknown };
  return type === 'try_again' || status === 'complete_metadata' || error !== undefined;
}
