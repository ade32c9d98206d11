import type { z } from 'zod';
import { ServiceFailed } from '../errors.ts';
import { parseValue } from '../http/parse-answer.ts';
import { decodeForwardBackwardOutput, decodeSampleResponse, type ForwardBackwardOutput, type SampleResponse } from '../wire/index.ts';
import type { Future, RawResult } from './futures.ts';
import { fromJsonForwardBackward, fromJsonSample, jsonForwardBackwardSchema, jsonSampleSchema } from './json-results.ts';

/** @throws ServiceFailed when it is no sample */
export function sampleOf(result: RawResult, future: Future): SampleResponse {
  return decoded(result, future, decodeSampleResponse, jsonSampleSchema, fromJsonSample);
}

/** @throws ServiceFailed when it is no forward_backward result */
export function forwardBackwardOf(result: RawResult, future: Future): ForwardBackwardOutput {
  return decoded(result, future, decodeForwardBackwardOutput, jsonForwardBackwardSchema, fromJsonForwardBackward);
}

function decoded<Result, Schema extends z.ZodType>(
  result: RawResult,
  { type, requestId }: Future,
  fromProtobuf: (bytes: Uint8Array) => Result,
  schema: Schema,
  fromJson: (json: z.infer<Schema>) => Result,
): Result {
  const json = 'json' in result ? parseValue(result.json, schema, type, requestId) : null;
  try {
    return 'json' in result ? fromJson(json as z.infer<Schema>) : fromProtobuf(result.protobuf);
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceFailed(`the result does not fit the protocol: ${what}`, { call: type, requestId, cause });
  }
}
