import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ModelAccess } from '../activities/model-access.ts';
import { createPreflightActivities, type ModelChecks } from '../activities/preflight.ts';
import { type RendererOf, Renderers } from '../activities/renderers.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { NO_USAGE, type SentTokens } from '../core/measures/usage.ts';
import { type ChatRenderer, rendererFor } from '../services/gateway/index.ts';
import { ModelFiles } from '../services/hub/index.ts';
import { TinkerClient } from '../services/tinker/index.ts';
import type { SampleResponse } from '../services/tinker/wire/index.ts';
import { AlteringProxy, type Faults } from './support/altering-proxy.ts';
import { CallLogFile, countedTokens } from './support/call-log-file.ts';
import { KEY, startTrainerProcess, type Trainer } from './trainer-process.ts';

const STUDENT = 'stillroom/tiny-student';
const TEACHER = 'stillroom/tiny-teacher';
const OFFLINE = { cacheDir: '/nowhere', endpoint: null, token: null, offline: true };
const ALL = [
  'renderers',
  'vocabulary',
  'template and stop ids',
  'student answers',
  'teacher answers',
  'student context',
  'teacher context',
  'tokens in, tokens out',
  'teacher agrees with itself',
];

let state: string;
let trainer: Trainer;
let service: AlteringProxy;
let project: Project;
beforeAll(async () => {
  state = mkdtempSync(join(tmpdir(), 'preflight-trainer-'));
  [trainer, project] = await Promise.all([
    startTrainerProcess({ state, env: { STILLROOM_TRAINER_CALL_LOG: join(state, 'calls.jsonl') } }),
    Project.make(),
  ]);
  service = await AlteringProxy.start(trainer.url);
});
afterEach(() => service.heal());
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await trainer?.kill('SIGTERM');
  await project?.[Symbol.asyncDispose]();
  rmSync(state, { recursive: true, force: true });
});

let runs = 0;
let lastUsage = NO_USAGE;
type Wish = {
  readonly config?: string;
  readonly rendererOf?: RendererOf;
  readonly url?: string;
  readonly environment?: MockActivityEnvironment;
};

/** Preflight of a run with this config, as a worker does it: own session, real client, real socket. */
async function preflight({ config = CONFIG, rendererOf, url = service.url, environment = new MockActivityEnvironment() }: Wish = {}) {
  runs += 1;
  const { ref } = await project.resolve({ config }, { runId: `run-${runs}`, executionId: `e${runs}` });
  await using models = new ModelAccess(() => TinkerClient.connect({ baseUrl: url, apiKey: KEY, noProgressMs: 300 }));
  const { checkModels } = createPreflightActivities({
    records: project.records,
    objects: project.objects,
    models,
    rendererOf: rendererOf ?? new Renderers({ objects: project.objects, files: new ModelFiles(OFFLINE) }).of,
  });
  const { checks, usage } = (await environment.run(checkModels, { run: ref })) as ModelChecks;
  lastUsage = usage;
  return checks;
}

/** What the trainer wrote down of the calls that it carried out. */
const counted = () => countedTokens(new CallLogFile(join(state, 'calls.jsonl')).calls());

describe('healthy models', () => {
  it('are asked no token that is not in the books', async () => {
    await preflight();
    const before = counted();
    await preflight();
    const after = counted();
    const { sent, meters, lost } = lastUsage;
    expect(lost).toEqual([]);
    for (const key of Object.keys(sent) as (keyof SentTokens)[]) expect([key, sent[key]]).toEqual([key, after[key] - before[key]]);
    expect(sent.scoredTokens).toBeGreaterThan(0);
    expect(Object.keys(meters).sort()).toEqual(['student_prefill', 'student_sample', 'teacher_prefill', 'teacher_sample']);
  });

  it('pass every check, each with its numbers', async () => {
    const checks = await preflight();
    expect(checks.map(({ name, ok }) => `${name} ${ok}`)).toEqual(ALL.map((name) => `${name} true`));
    const numbers = Object.fromEntries(checks.map((check) => [check.name, check.numbers]));
    expect(numbers['student context']).toEqual({ asked: 1024, limit: 192 });
    expect(numbers['teacher agrees with itself']).toEqual({ rounds: 3, spreadNats: expect.closeTo(0, 6) });
    expect(numbers['tokens in, tokens out']).toEqual({
      tokens: 16,
      meanAbsDiffNats: expect.closeTo(0, 4),
      maxAbsDiffNats: expect.closeTo(0, 3),
    });
  });

  it('need not say how long a context they take', async () => {
    service.faults = { models: (models) => models.map(({ max_context_length: _, ...rest }) => rest) };
    const context = (await preflight()).find(({ name }) => name === 'teacher context');
    expect(context).toMatchObject({ ok: true, numbers: { asked: 1024 }, detail: expect.stringContaining('does not say its limit') });
  });

  it('may end sequences early: the proof takes as many as make up its sixteen tokens', async () => {
    const first = (answer: SampleResponse): SampleResponse => ({
      ...answer,
      sequences: answer.sequences.map((s) => ({ ...s, tokens: s.tokens.slice(0, 5), logprobs: s.logprobs?.slice(0, 5) ?? null })),
    });
    service.faults = { sample: (answer) => (answer.promptLogprobs === null ? first(answer) : answer) };
    expect((await preflight()).find(({ name }) => name === 'tokens in, tokens out')).toMatchObject({ ok: true, numbers: { tokens: 16 } });
  });

  it('may lose the session once: a new one is opened', async () => {
    let refusals = 0;
    service.faults = { refuse: (path) => (path === 'create_sampling_session' && refusals++ === 0 ? 410 : undefined) };
    expect((await preflight()).every(({ ok }) => ok)).toBe(true);
    expect(refusals).toBeGreaterThan(1);
  });
});

const withModels = (student: string, teacher: string) => CONFIG.replaceAll(STUDENT, student).replaceAll(TEACHER, teacher);

/** The teacher's renderer with something about it changed. */
const teacherWith =
  (change: (renderer: ChatRenderer) => Partial<ChatRenderer>): RendererOf =>
  async (_, model) => {
    const renderer = rendererFor({ name: 'stillroom_tiny' });
    return model === TEACHER ? { ...renderer, ...change(renderer) } : renderer;
  };

const scores = (change: (logprobs: Float32Array, index: number) => Float32Array, only?: string): Faults => ({
  sample: (answer, { model, index }) =>
    answer.promptLogprobs === null || (only !== undefined && model !== only)
      ? answer
      : { ...answer, promptLogprobs: change(answer.promptLogprobs, index) },
});

const samples = (change: (sequence: SampleResponse['sequences'][number]) => object): Faults => ({
  sample: (answer) =>
    answer.promptLogprobs === null ? { ...answer, sequences: answer.sequences.map((s) => ({ ...s, ...change(s) })) } : answer,
});

const PROOF = /^(mean|largest) difference [\d.]+ nats/;

/** What is sampled in earnest, not for a ping: a fault that spares the pings shows in the proof. */
const longSamples = (change: (sequence: SampleResponse['sequences'][number]) => object): Faults =>
  samples((sequence) => (sequence.tokens.length > 1 ? change(sequence) : {}));

describe('each check fails by name, and nothing is looked at after it', () => {
  it.each<[string, string, Wish & { readonly faults?: Faults }, RegExp]>([
    [
      'renderers',
      "a real model's renderer for one that has no files",
      { config: CONFIG.replace('student" = "stillroom_tiny"', 'student" = "qwen3"') },
      /rollout\.renderers gives stillroom\/tiny-student the renderer "qwen3", but the embedded tiny models have "stillroom_tiny" alone/,
    ],
    [
      'renderers',
      'a model whose tokenizer is nowhere to be had',
      { config: withModels(STUDENT, 'org/teacher').replace('"org/teacher" = "stillroom_tiny"', '') },
      /no tokenizer files of org\/teacher: nothing at .*"tokenizers": \{"org\/teacher": "\.\/folder"\}/,
    ],
    [
      'vocabulary',
      'a tokenizer that splits otherwise',
      { rendererOf: teacherWith(({ tokenize }) => ({ tokenize: async (text) => (await tokenize(text)).toReversed() })) },
      /tokenize "ls -la \| grep foo > bar" differently/,
    ],
    [
      'vocabulary',
      'one id with another string',
      {
        rendererOf: teacherWith((r) => ({
          vocabulary: {
            ...r.vocabulary,
            idToString: (id) => (id === 65 ? '<eos>' : r.vocabulary.idToString(id)),
            bytesOf: (id) => (id === 65 ? Buffer.from('<eos>') : r.vocabulary.bytesOf(id)),
          },
        })),
      },
      /id 65 is "A" for the student and "<eos>" for the teacher/,
    ],
    [
      'template and stop ids',
      'other stop ids',
      { rendererOf: teacherWith(() => ({ stopTokens: [10, 0] })) },
      /student stops on ids 10, the teacher on 10,0/,
    ],
    [
      'template and stop ids',
      'another template',
      { rendererOf: teacherWith(() => ({ fingerprint: () => ({ template: 'other' }) })) },
      /render conversations differently/,
    ],
    ['student answers', 'a student the service does not know', { config: withModels('stillroom/nobody', TEACHER) }, /nobody/],
    ['student answers', 'two tokens where one was asked', { faults: samples(twice) }, /asked for one token, got 2/],
    [
      'student answers',
      'a key the service refuses',
      { faults: { refuse: (path) => (path === 'asample' ? 401 : undefined) } },
      /TINKER_API_KEY/,
    ],
    ['student answers', 'a service that is not there', { url: 'http://127.0.0.1:9' }, /no answer from the service/],
    ['teacher answers', 'a teacher the service does not know', { config: withModels(STUDENT, 'stillroom/nobody') }, /nobody/],
    [
      'student context',
      'turns as long as the context',
      { config: CONFIG.replace('max_tokens = 28', 'max_tokens = 192') },
      /stillroom\/tiny-student takes 192 tokens in all, and sampling\.max_tokens alone is 192: lower it/,
    ],
    ['student context', 'a model that is not listed', { faults: { models: () => [] } }, /does not list the model stillroom\/tiny-student/],
    [
      'teacher context',
      'a teacher with less context than a turn',
      { faults: { models: (models) => models.map((m) => (m.model_name === TEACHER ? { ...m, max_context_length: 20 } : m)) } },
      /stillroom\/tiny-teacher takes 20 tokens in all/,
    ],
    [
      'tokens in, tokens out',
      'scores one token off',
      { faults: scores((row) => Float32Array.of(Number.NaN, ...row.subarray(0, -1))) },
      PROOF,
    ],
    ['tokens in, tokens out', 'scores of another model', { faults: scores((row) => row.map((value) => value * 3 - 1)) }, PROOF],
    [
      'tokens in, tokens out',
      'ids that were tokenized again',
      { faults: longSamples(({ tokens }) => ({ tokens: tokens.map(upper) })) },
      PROOF,
    ],
    ['tokens in, tokens out', 'one id that is another', { faults: longSamples(({ tokens }) => ({ tokens: tokens.with(7, 63) })) }, PROOF],
    [
      'tokens in, tokens out',
      'an id without a log-probability',
      { faults: longSamples(({ logprobs }) => ({ logprobs: logprobs?.with(3, Number.NaN) })) },
      /16 sampled tokens have 16 issued and 15 recomputed log-probabilities/,
    ],
    [
      'tokens in, tokens out',
      'no log-probabilities at all',
      { faults: longSamples(() => ({ logprobs: null })) },
      /no usable log-probability/,
    ],
    [
      'tokens in, tokens out',
      'an id without a score',
      { faults: scores((row) => row.with(-1, Number.NaN)) },
      /log-probability of token 15 is not finite/,
    ],
    ['tokens in, tokens out', 'scores cut short', { faults: scores((row) => row.subarray(0, -2)) }, /asked for the log-probabilities of/],
    [
      'teacher agrees with itself',
      'scores that jitter',
      { faults: scores((row, index) => row.map((value) => value - 0.02 * index), TEACHER) },
      /3 scores of one sequence differ by 0\.04\d nats, more than 0\.01/,
    ],
    [
      'teacher agrees with itself',
      'a score that is missing',
      { faults: scores((row) => row.with(4, Number.NaN), TEACHER) },
      /no score for token 4/,
    ],
  ])('%s: %s', async (name, _, { faults = {}, ...wish }, detail) => {
    service.faults = faults;
    const checks = await preflight(wish);
    expect(checks.map((check) => check.name)).toEqual(ALL.slice(0, ALL.indexOf(name) + 1));
    expect(checks.filter(({ ok }) => ok)).toHaveLength(checks.length - 1);
    const failed = checks.at(-1);
    expect(failed).toMatchObject({ name, ok: false });
    expect(failed?.detail).toMatch(detail);
    for (const value of Object.values(failed?.numbers ?? {})) expect(value).toSatisfy(Number.isFinite); // history is JSON: it has no NaN
  });
});

it('beats while it waits for a model, and ends at once when that says it is cancelled: no failed check', async () => {
  const environment = new MockActivityEnvironment();
  environment.on('heartbeat', () => environment.cancel('CANCELLED'));
  service.faults = { swallow: (path) => path === 'asample' };
  await expect(preflight({ environment })).rejects.toMatchObject({ name: 'CancelledFailure' });
});

function upper(id: number): number {
  return String.fromCharCode(id).toUpperCase().charCodeAt(0);
}

function twice({ tokens, logprobs }: SampleResponse['sequences'][number]): object {
  return { tokens: Int32Array.of(...tokens, ...tokens), logprobs: Float32Array.of(...(logprobs ?? []), ...(logprobs ?? [])) };
}
