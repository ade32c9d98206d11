import { setImmediate } from 'node:timers/promises';
import type { RunConfig } from '../core/config/index.ts';
import type { TrialId } from '../core/ids.ts';
import { failed, passed } from '../core/run/check.ts';
import type { Check } from '../core/run/results.ts';
import type { ModelRef } from '../core/run/trial.ts';
import { buildDatums } from '../core/tokens/datums.ts';
import { decodeEpisode, encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { Datum, Span } from '../core/tokens/span.ts';
import { type ChatRenderer, proveTokens } from '../services/gateway/index.ts';
import type { Sampler } from '../services/tinker/index.ts';
import type { ModelAccess } from './model-access.ts';

/** Sampled and scored again by the proof. */
const PROOF_TOKENS = 16;
/** How often the teacher scores the same sequence, and how far apart the answers may be. */
const TEACHER_ROUNDS = 3;
const TEACHER_SPREAD_NATS = 0.01;

/** Vocabularies have some hundred thousand ids, and this worker has other work. */
const IDS_AT_ONCE = 4096;

/** Texts that a tokenizer pair must read alike: code, spaces, Unicode, look-alikes of special tokens. */
export const PROBE_TEXTS = [
  'ls -la | grep foo > bar',
  '  two  spaces\n\ttab',
  'naïve 漢字 🙂',
  '<|im_end|></s>[INST]',
  '0123456789 -1.5e-3',
];

export type ModelSide = { readonly model: ModelRef; readonly renderer: ChatRenderer };
export type ModelPair = { readonly student: ModelSide; readonly teacher: ModelSide };
export type Who = keyof ModelPair;

/** What the checks ask of a model. */
export type CheckedSampler = Pick<Sampler, 'sample' | 'promptLogprobs'>;

/** How the checks reach models, and the signal that ends their calls. */
export type Reach = {
  readonly models: Pick<ModelAccess, 'contextLimitTokens' | 'longestWait'> & {
    withSampler<T>(model: ModelRef, work: (sampler: CheckedSampler) => Promise<T>): Promise<T>;
  };
  readonly signal: AbortSignal;
};

/** Student and teacher must read the same ids the same way, or a teacher's score says nothing about the student's token. */
export async function checkVocabulary({ student, teacher }: ModelPair): Promise<Check> {
  const name = 'vocabulary';
  for (const text of PROBE_TEXTS) {
    const [ids, others] = [await student.renderer.tokenize(text), await teacher.renderer.tokenize(text)];
    if (ids.join() !== others.join())
      return failed(name, `student and teacher tokenize ${JSON.stringify(text)} differently: use a teacher with the student's tokenizer`);
  }
  const [own, others] = [student.renderer.vocabulary, teacher.renderer.vocabulary];
  const size = Math.min(own.size, others.size);
  for (let id = 0; id < size; id++) {
    if (id % IDS_AT_ONCE === 0) await setImmediate();
    // By its bytes: as text, halves of characters all look alike.
    if (Buffer.compare(own.bytesOf(id), others.bytesOf(id)) === 0) continue;
    const [is, isThere] = [own, others].map((vocabulary) => JSON.stringify(vocabulary.idToString(id)));
    return failed(name, `id ${id} is ${is} for the student and ${isThere} for the teacher`, { id });
  }
  return passed(name, `${size} ids and ${PROBE_TEXTS.length} probe texts read alike`, { ids: size });
}

export async function checkTemplate({ student, teacher }: ModelPair): Promise<Check> {
  const name = 'template and stop ids';
  const [stops, others] = [student.renderer.stopTokens.join(), teacher.renderer.stopTokens.join()];
  if (stops !== others)
    return failed(name, `the student stops on ids ${stops}, the teacher on ${others}: the teacher would score an end it never writes`);
  const [own, theirs] = [await student.renderer.fingerprint(), await teacher.renderer.fingerprint()];
  if (own.template !== theirs.template)
    return failed(name, 'student and teacher render conversations differently: set rollout.renderers so that both use one template');
  return passed(name, `both end turns on ids ${stops}`);
}

/** One token from each model: the cheapest sign that it can be reached and sampled. */
export async function checkPing(who: Who, { model, renderer }: ModelSide, { models, signal }: Reach): Promise<Check> {
  const prompt = await probePrompt(renderer);
  const startedAtMs = Date.now();
  const { tokens } = await models.withSampler(model, (sampler) =>
    sampler.sample({ prompt, maxTokens: 1, temperature: 1, stopTokens: renderer.stopTokens, signal }),
  );
  const ms = Date.now() - startedAtMs;
  return tokens.length === 1
    ? passed(`${who} answers`, `one token in ${ms} ms`, { ms })
    : failed(`${who} answers`, `asked for one token, got ${tokens.length}`);
}

/** The service must hold a turn at least; where it takes less than the run's budget, episodes end at its limit. */
export async function checkContext(who: Who, { model }: ModelSide, config: RunConfig, { models }: Reach): Promise<Check> {
  const name = `${who} context`;
  const [asked, turn] = [config.rollout.context_budget_tokens, config.sampling.max_tokens];
  const limit = await models.contextLimitTokens(model.model);
  if (limit === null) return passed(name, `the service does not say its limit; the run uses up to ${asked} tokens`, { asked });
  if (limit <= turn)
    return failed(name, `${model.model} takes ${limit} tokens in all, and sampling.max_tokens alone is ${turn}: lower it`, { limit, turn });
  const used = Math.min(limit, asked);
  return passed(
    name,
    limit < asked
      ? `episodes end at ${used} tokens: the service takes fewer than rollout.context_budget_tokens = ${asked}`
      : `${used} of ${limit} tokens are used`,
    { asked, limit },
  );
}

/**
 * Tokens in, tokens out: ids that the sampler issued, stored and merged as a trial's are and scored as the teacher would score them,
 * must get the log-probabilities that they were issued with.
 */
export async function checkTokenProof({ model, renderer }: ModelSide, { models, signal }: Reach): Promise<Check> {
  const name = 'tokens in, tokens out';
  const prompt = await probePrompt(renderer);
  const [sampled, issued, recomputed]: [number[], number[], number[]] = [[], [], []];
  // A service may end a sequence early whatever it is told; then several make up the number.
  while (sampled.length < PROOF_TOKENS) {
    const maxTokens = PROOF_TOKENS - sampled.length;
    const { tokens, logprobs, stop } = await models.withSampler(model, (sampler) =>
      sampler.sample({ prompt, maxTokens, temperature: 1, stopTokens: [], signal }),
    );
    if (tokens.length === 0) return failed(name, 'the sampler returned no ids, not even a stop token');
    const span = { callIndex: 0, prompt, sampled: tokens, logprobs: Float64Array.from(logprobs), stop, sampler: model.version };
    const datum = asTrained(span);
    if (datum === null) return failed(name, 'the sampler gave no usable log-probability');
    const scores = await models.withSampler(model, (sampler) => sampler.promptLogprobs(datum.tokens, { signal }));
    sampled.push(...tokens);
    issued.push(...logprobs);
    recomputed.push(...scores.logprobs.filter((_, position) => datum.mask[position] === 1));
  }
  const { ok, reason, meanAbsDiffNats, maxAbsDiffNats } = proveTokens({
    sampled: Int32Array.from(sampled),
    issued: Float64Array.from(issued),
    recomputed: Float64Array.from(recomputed),
  });
  const numbers = { tokens: sampled.length, ...(Number.isFinite(meanAbsDiffNats) ? { meanAbsDiffNats, maxAbsDiffNats } : {}) };
  return ok
    ? passed(name, `mean difference ${meanAbsDiffNats.toExponential(1)} nats over ${sampled.length} tokens`, numbers)
    : failed(name, `${reason}`, numbers);
}

/** One call on the way that every trial's calls take: into the blob store's bytes, out again, and into a training sequence. */
function asTrained(span: Span): Datum | null {
  const episode = decodeEpisode(encodeEpisode({ trial: 'preflight' as TrialId, spans: [span], stopReason: null }));
  const noLimit = { contextBudgetTokens: Number.POSITIVE_INFINITY, maxDatumTokens: Number.POSITIVE_INFINITY };
  return buildDatums([episode], noLimit).datums[0] ?? null;
}

/** A teacher that does not agree with itself would train noise. */
export async function checkTeacherAgrees({ model, renderer }: ModelSide, { models, signal }: Reach): Promise<Check> {
  const name = 'teacher agrees with itself';
  const prompt = await probePrompt(renderer);
  const rounds: Float64Array[] = [];
  for (let round = 0; round < TEACHER_ROUNDS; round++)
    rounds.push((await models.withSampler(model, (sampler) => sampler.promptLogprobs(prompt, { signal }))).logprobs);
  let spread = 0;
  for (let i = 1; i < prompt.length; i++) {
    const scores = rounds.map((row) => row[i] ?? Number.NaN);
    if (!scores.every(Number.isFinite)) return failed(name, `no score for token ${i} of a plain prompt`, { token: i });
    spread = Math.max(spread, Math.max(...scores) - Math.min(...scores));
  }
  const numbers = { rounds: TEACHER_ROUNDS, spreadNats: spread };
  return spread <= TEACHER_SPREAD_NATS
    ? passed(name, `${TEACHER_ROUNDS} scores of one sequence within ${spread.toExponential(1)} nats`, numbers)
    : failed(
        name,
        `${TEACHER_ROUNDS} scores of one sequence differ by ${spread.toFixed(3)} nats, more than ${TEACHER_SPREAD_NATS}`,
        numbers,
      );
}

async function probePrompt(renderer: ChatRenderer): Promise<Int32Array> {
  return renderer.render([{ role: 'user', content: 'files a b\ntask list the files' }], { tools: [], addGenerationPrompt: true });
}
