import { decodeForwardBackwardOutput, decodeSampleResponse } from '../../../services/tinker/wire/index.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, EXACT } from '../same.ts';
import { type JsonOutput, type JsonSample, outputJson, sampleJson, tidyOutput, tidySample } from '../tinker/result-json.ts';

type DecodeCase = { readonly body_base64: string };

function output({ body_base64 }: DecodeCase, expected: JsonOutput): Finding {
  const found = difference(tidyOutput(expected), outputJson(decodeForwardBackwardOutput(Buffer.from(body_base64, 'base64'))), EXACT);
  return found === null ? null : { difference: found };
}

function sample({ body_base64 }: DecodeCase, expected: JsonSample): Finding {
  const found = difference(tidySample(expected), sampleJson(decodeSampleResponse(Buffer.from(body_base64, 'base64'))), EXACT);
  return found === null ? null : { difference: found };
}

export const fwdbwdResponseDecode: FamilyAdapter = { family: 'fwdbwd_response_decode', kinds: { '': output } };
export const sampleResponseDecode: FamilyAdapter = { family: 'sample_response_decode', kinds: { '': sample } };
