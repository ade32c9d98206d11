import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, EXACT } from '../same.ts';
import { type JsonOutput, type JsonSample, outputJson, sampleJson, tidyNumbers, tidyOutput, tidySample } from '../tinker/result-json.ts';
import { type Exchange, type Result, resultOf } from '../tinker/session.ts';
import type { JsonNumber } from '../tinker/wire-json.ts';
import type { VectorCase, VectorFamily } from '../vector-file.ts';

type Step = { readonly step: string; readonly error?: string; readonly result?: unknown };

type Shapes = (result: Result) => readonly unknown[];
const SCORES: Shapes = (one) => ('sample' in one ? [sampleJson(one.sample).prompt_logprobs] : []);
const SAMPLES: Shapes = (one) => ('sample' in one ? [sampleJson(one.sample)] : []);
const LOSSES: Shapes = (one) => ('loss' in one ? [outputJson(one.loss)] : []);

/** What the official client returned for a step is what ours makes of the session's answer to it: the steps were made one by one. */
function step({ error, result }: Step, _: never, family: VectorFamily, vector: VectorCase): Finding {
  if (error !== undefined) return { notApplicable: 'the recorded client failed' };
  const compared = (expected: unknown, shapes: Shapes, isAlike: (result: unknown) => boolean) => {
    const isReturned = ({ input }: VectorCase) => (input as Step).error === undefined && isAlike((input as Step).result);
    const returned = family.cases.filter(isReturned);
    const place = returned.indexOf(vector);
    const ours = resultsOfSession(family).flatMap(shapes);
    // Beyond those that the client returned come answers that it refused, somewhere in between.
    return oneOf(expected, ours.slice(place, place + 1 + Math.max(ours.length - returned.length, 0)));
  };
  const isOfSample = (one: unknown) => isScores(one) || isSample(one);
  if (isScores(result)) return compared(tidyNumbers(result), SCORES, isOfSample);
  if (isSample(result)) return compared(tidySample(result), SAMPLES, isOfSample);
  if (isOutput(result)) return compared(tidyOutput(result), LOSSES, isOutput);
  return { notApplicable: 'no loss and no sample' };
}

function isScores(result: unknown): result is readonly JsonNumber[] {
  return Array.isArray(result);
}

function isSample(result: unknown): result is JsonSample {
  return typeof result === 'object' && result !== null && 'sequences' in result;
}

function isOutput(result: unknown): result is JsonOutput {
  return typeof result === 'object' && result !== null && 'loss_fn_outputs' in result;
}

function oneOf(expected: unknown, ours: readonly unknown[]): Finding {
  const found = ours.map((one) => difference(expected, one, EXACT));
  if (found.includes(null)) return null;
  return { difference: found[0] ?? 'the session holds no answer to this step' };
}

/** The session lies beside its results, under the same name. */
function resultsOfSession({ path, file }: VectorFamily): Result[] {
  const session = join(dirname(path), file.replace(/^results\./, 'session.').replace(/\.json$/, '.jsonl'));
  const lines = readFileSync(session, 'utf8').trim().split('\n');
  return lines.flatMap((line) => resultOf(JSON.parse(line) as Exchange) ?? []);
}

export const tinkerSessionResults: FamilyAdapter = { family: 'results.', isPrefix: true, kinds: { '': step } };
