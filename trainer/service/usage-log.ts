import { appendFileSync } from 'node:fs';
import { fromBinary } from '@bufbuild/protobuf';
import { decodeSampleResponse } from '../../services/tinker/wire/index.ts';
import { ForwardBackwardRequestSchema } from '../../services/tinker/wire/tinker_public_pb.ts';

/** What a call is charged for. A prompt is either continued or scored. */
export type CallTokens = {
  readonly promptTokens: number;
  readonly sampledTokens: number;
  readonly scoredTokens: number;
  /** Tokens of the sequences, their last targets included. */
  readonly trainedTokens: number;
};

/** A call that ended well; one that was given up or failed costs nothing. */
export type FinishedCall = {
  readonly call: 'sample' | 'forward_backward';
  readonly requestId: string;
  /** The weights sampled from, or the model trained. */
  readonly model: string;
};

/** Counts a call, before anybody can see its result. */
export type CountUsage = (call: FinishedCall, tokens: () => CallTokens) => void;

/** Writes one JSON object a line. Lines survive the process; nothing is ever read from the file here. */
export function usageLog(path: string): CountUsage {
  return (call, tokens) => appendFileSync(path, `${JSON.stringify({ ...call, ...tokens() })}\n`, { mode: 0o600 });
}

/** Tokens of a sample: `response` is the message that the client gets. */
export function sampledTokens(promptTokens: number, isScored: boolean, response: Uint8Array): CallTokens {
  const sampled = decodeSampleResponse(response).sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const prompt = isScored ? { promptTokens: 0, scoredTokens: promptTokens } : { promptTokens, scoredTokens: 0 };
  return { ...prompt, sampledTokens: sampled, trainedTokens: 0 };
}

/** Tokens of a forward_backward body. */
export function trainedTokens(body: Uint8Array): CallTokens {
  const { data } = fromBinary(ForwardBackwardRequestSchema, body);
  const inputs = data.flatMap(({ modelInput }) =>
    modelInput.map(({ chunk }) => (chunk.case === 'encodedText' ? chunk.value.tokens.length / Int32Array.BYTES_PER_ELEMENT : 0)),
  );
  const trained = inputs.reduce((sum, tokens) => sum + tokens, data.length);
  return { promptTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: trained };
}
