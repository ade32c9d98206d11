import type { z } from 'zod';
import { ServiceFailed } from '../errors.ts';
import { parseValue, type Scrubber } from '../http/parse-answer.ts';
import { decodeForwardBackwardOutput, decodeSampleResponse, type ForwardBackwardOutput, type SampleResponse } from '../wire/index.ts';
import type { Future, RawResult } from './futures.ts';
import { fromJsonForwardBackward, fromJsonSample, jsonForwardBackwardSchema, jsonSampleSchema } from './json-results.ts';

const AS_IT_IS: Scrubber = { scrub: (text) => text };

/** @throws ServiceFailed when it is no sample */
export function sampleOf(result: RawResult, future: Future, scrubber = AS_IT_IS): SampleResponse {
  return decoded(result, future, scrubber, decodeSampleResponse, jsonSampleSchema, fromJsonSample);
}

/** @throws ServiceFailed when it is no forward_backward result */
export function forwardBackwardOf(result: RawResult, future: Future, scrubber = AS_IT_IS): ForwardBackwardOutput {
  return decoded(result, future, scrubber, decodeForwardBackwardOutput, jsonForwardBackwardSchema, fromJsonForwardBackward);
}

function decoded<Result, Schema extends z.ZodType>(
  result: RawResult,
  { type, requestId }: Future,
  scrubber: Scrubber,
  fromProtobuf: (bytes: Uint8Array) => Result,
  schema: Schema,
  fromJson: (json: z.infer<Schema>) => Result,
): Result {
  const json = 'json' in result ? parseValue(result.json, schema, scrubber, type, requestId) : null;
  try {
    return 'json' in result ? fromJson(json as z.infer<Schema>) : fromProtobuf(result.protobuf);
  } catch (error) {
    const what = scrubber.scrub(error instanceof Error ? error.message : String(error));
    throw new ServiceFailed(`the result does not fit the protocol: ${what}`, { call: type, requestId });
  }
}
