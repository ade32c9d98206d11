import { zstdDecompressSync } from 'node:zlib';
import { TinkerClient } from '../../../services/tinker/index.ts';
import { decompressBody, encodeForwardBackwardRequest, estimatedBytes } from '../../../services/tinker/wire/index.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, EXACT } from '../same.ts';
import { TrainingServer } from '../tinker/training-server.ts';
import { type JsonRequest, requestJson, requestOf, tidyRequest } from '../tinker/wire-json.ts';

type EncodeCase = {
  readonly req_headers: Readonly<Record<string, string>>;
  readonly sdk_body_base64: string;
  readonly canonical_base64: string;
  readonly estimated_bytes: number;
};

const LARGEST_BODY_BYTES = 1e9;

/** Our bytes against the canonical ones and field for field; the recorded client's own bytes through our decoder too. */
function encode(vector: EncodeCase, expected: JsonRequest): Finding {
  return bodyDiffers(vector, expected, encodeForwardBackwardRequest(requestOf(expected)), Buffer.from(vector.sdk_body_base64, 'base64'));
}

/** What the client sends over a socket to a service that asks for zstd. */
async function encodeZstd(vector: EncodeCase & { decompressed_base64: string }, expected: JsonRequest): Promise<Finding> {
  const { modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly } = requestOf(expected);
  await using server = await TrainingServer.start({ proto_compress_fwdbwd: true });
  await using client = await TinkerClient.connect({ baseUrl: server.url, apiKey: 'tml-vectors' });
  const training = client.training(modelId, { nextSeqId: seqId });
  await (forwardOnly
    ? training.forward(datums, lossFn, { lossConfig: lossFnConfig })
    : training.forwardBackward(datums, lossFn, { lossConfig: lossFnConfig }));
  const [arrival] = server.arrivals;
  if (arrival?.call !== 'forward_backward') return { difference: 'nothing arrived' };
  for (const name of ['content-type', 'content-encoding']) {
    const found = difference(vector.req_headers[name], arrival.headers[name], EXACT, name);
    if (found !== null) return { difference: found };
  }
  const theirs = await decompressBody(Buffer.from(vector.sdk_body_base64, 'base64'), LARGEST_BODY_BYTES);
  const found = difference(vector.decompressed_base64, Buffer.from(theirs).toString('base64'), EXACT, 'decompressed_base64');
  if (found !== null) return { difference: found };
  if (!carriesItsSize(arrival.body)) return { difference: 'our zstd frame does not carry its content size' };
  return bodyDiffers(vector, expected, zstdDecompressSync(arrival.body), theirs);
}

function bodyDiffers(vector: EncodeCase, expected: JsonRequest, ours: Uint8Array, theirs: Uint8Array): Finding {
  const found =
    difference(tidyRequest(expected), requestJson(ours), EXACT) ??
    difference(vector.canonical_base64, Buffer.from(ours).toString('base64'), EXACT, 'canonical_base64') ??
    difference(tidyRequest(expected), requestJson(theirs), EXACT, 'sdk_body_base64') ??
    difference(
      vector.estimated_bytes,
      requestOf(expected).datums.reduce((sum, datum) => sum + estimatedBytes(datum), 0),
      EXACT,
      'estimated_bytes',
    );
  return found === null ? null : { difference: found };
}

/** RFC 8878, 3.1.1.1: the frame header's descriptor follows the magic number; its upper bits say whether a content size follows. */
function carriesItsSize(frame: Buffer): boolean {
  const descriptor = frame[4] ?? 0;
  return frame.readUInt32LE(0) === 0xfd2fb528 && (descriptor & 0b1110_0000) !== 0;
}

export const fwdbwdEncode: FamilyAdapter = { family: 'fwdbwd_encode', kinds: { '': encode } };
export const fwdbwdEncodeZstd: FamilyAdapter = { family: 'fwdbwd_encode_zstd', kinds: { '': encodeZstd } };
