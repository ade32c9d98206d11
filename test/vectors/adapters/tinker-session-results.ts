import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, EXACT } from '../same.ts';
import { type JsonOutput, type JsonSample, outputJson, sampleJson, tidyNumbers, tidyOutput, tidySample } from '../tinker/result-json.ts';
import { type Exchange, type Result, resultOf } from '../tinker/session.ts';
import type { JsonNumber } from '../tinker/wire-json.ts';
import type { VectorFamily } from '../vector-file.ts';

type Step = { readonly step: string; readonly error?: string; readonly result?: unknown };

/** What the official client returned for a step is what ours makes of one of the session's exchanges. */
function step({ error, result }: Step, _: never, family: VectorFamily): Finding {
  if (error !== undefined) return { notApplicable: 'the recorded client failed' };
  const ours = resultsOfSession(family);
  const samples = ours.flatMap((one) => ('sample' in one ? [sampleJson(one.sample)] : []));
  if (isScores(result))
    return oneOf(
      tidyNumbers(result),
      samples.map((sample) => sample.prompt_logprobs),
    );
  if (isSample(result)) return oneOf(tidySample(result), samples);
  if (isOutput(result))
    return oneOf(
      tidyOutput(result),
      ours.flatMap((one) => ('loss' in one ? [outputJson(one.loss)] : [])),
    );
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
  return { difference: `none of the session's ${ours.length} results of this kind; the first: ${found[0]}` };
}

/** The session lies beside its results, under the same name. */
function resultsOfSession({ path, file }: VectorFamily): Result[] {
  const session = join(dirname(path), file.replace(/^results\./, 'session.').replace(/\.json$/, '.jsonl'));
  const lines = readFileSync(session, 'utf8').trim().split('\n');
  return lines.flatMap((line) => resultOf(JSON.parse(line) as Exchange) ?? []);
}

export const tinkerSessionResults: FamilyAdapter = { family: 'results.', isPrefix: true, kinds: { '': step } };
