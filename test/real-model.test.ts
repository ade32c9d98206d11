import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ModelAccess } from '../activities/model-access.ts';
import { createPreflightActivities } from '../activities/preflight.ts';
import { type RendererOf, Renderers } from '../activities/renderers.ts';
import { createRolloutActivities } from '../activities/rollouts.ts';
import { writeSamples } from '../activities/samples.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { inActivity } from '../activities/testing/training.ts';
import type { TrialId } from '../core/ids.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import { decodeEpisode } from '../core/tokens/episode-codec.ts';
import { startGateway } from '../services/gateway/index.ts';
import { loadTokenizer } from '../services/gateway/tokenizer/native.ts';
import type { Tokenizer } from '../services/gateway/tokenizer/tokenizer.ts';
import { TrialMemory, type TrialRun } from '../services/harbor/index.ts';
import { ModelFiles } from '../services/hub/index.ts';
import type { SampleRequest, TinkerClient } from '../services/tinker/index.ts';
import { FETCH_LIMIT_MS, testModel } from './support/tokenizers.ts';

/** A run's activities with a real model's tokenizer and chat template, and a service that says what the test has written. */

const [STUDENT, TEACHER] = ['Qwen/Qwen3-8B', 'Qwen/Qwen3-32B'];
const OFFLINE = { cacheDir: '/nowhere', endpoint: null, token: null, offline: true };
const REAL = CONFIG.replaceAll('stillroom/tiny-student', STUDENT)
  .replaceAll('stillroom/tiny-teacher', TEACHER)
  .replaceAll('stillroom_tiny', 'qwen3')
  .replace('max_tokens = 28', 'max_tokens = 400');

let project: Project;
let tokenizer: Tokenizer;
let rendererOf: RendererOf;
beforeAll(async () => {
  const { folder } = await testModel('qwen3');
  [project, tokenizer] = await Promise.all([Project.make(), loadTokenizer(folder)]);
  const files = new ModelFiles(OFFLINE, { [STUDENT]: { folder }, [TEACHER]: { folder } });
  rendererOf = new Renderers({ objects: project.objects, files, tokenizerIn: async () => tokenizer }).of;
}, FETCH_LIMIT_MS);
afterAll(() => project?.[Symbol.asyncDispose]());

const TURNS = [
  ['<think>\nThe list first: naïve 漢字 🙂\n</think>\n\n', 'ls -la "naïve 🙂"'],
  ['<think>\nCopy it.\n</think>\n\n', 'cp sun map && rm key'],
  ['', 'done'],
] as const;
const OBSERVATIONS = ['[0] sun 漢字', '[0]'];

/** Ids of a text as a model may sample it: markers as their tokens, the rest cut in places where no tokenizer would cut it. */
async function oddIds(text: string): Promise<number[]> {
  const threes = (part: string) => [...part].flatMap((_, at, all) => (at % 3 === 0 ? [all.slice(at, at + 3).join('')] : []));
  const pieces = text.split(/(<\/?think>)/).flatMap((part) => (part.includes('think>') ? [part] : threes(part)));
  const ids = await Promise.all(pieces.map((piece) => tokenizer.encode(piece)));
  return ids.flatMap((each) => [...each]);
}

/** A service that samples the turns in order, and gives every token half a nat. */
function service() {
  const asked: SampleRequest[] = [];
  const sample = async (request: SampleRequest) => {
    const [reasoning, said] = TURNS[asked.push(request) - 1] ?? ['', 'nothing more'];
    const all = [...(await oddIds(reasoning + said)), tokenizer.tokenId('<|im_end|>') ?? -1].slice(0, request.maxTokens);
    const tokens = Int32Array.from(all);
    return { tokens, logprobs: new Float32Array(tokens.length).fill(-0.5), stop: 'stop', promptCacheHitTokens: 0 };
  };
  const promptLogprobs = async (tokens: Int32Array) => ({
    logprobs: Float64Array.from(tokens, (_, at) => (at === 0 ? Number.NaN : -0.5)),
    topk: null,
    promptCacheHitTokens: 0,
    sampledTokens: 1,
  });
  const client = {
    sessionId: 's',
    capabilities: async () => ({ supportedModels: [STUDENT, TEACHER].map((modelName) => ({ modelName, maxContextLength: 40_960 })) }),
    sampler: async () => ({ sample, promptLogprobs }),
    close: async () => {},
  };
  return { asked, models: new ModelAccess(async () => client as unknown as TinkerClient) };
}

const OUTCOME: TrialRun = {
  trialDir: '',
  trialName: 't',
  taskName: 'a',
  reward: 1,
  passed: true,
  rewards: { reward: 1 },
  executed: true,
  infraFailed: false,
  infraReason: null,
  retry: 'never',
  exceptionType: null,
  exceptionMessage: null,
  fault: null,
  setAside: null,
  stopReason: 'done',
  agentTurns: 3,
  tests: null,
  rollout: { status: 'absent' } as unknown as TrialRun['rollout'],
  timings: { environmentSetupMs: 0, agentSetupMs: 0, agentMs: 0, verifierMs: 0, totalMs: 1 },
};

/** An agent that keeps the text of each answer, and no reasoning; observations are what a user says. */
async function playAgent(apiBase: string, key: string): Promise<string[]> {
  const messages: { role: string; content: string }[] = [
    { role: 'system', content: 'You work in a terminal.' },
    { role: 'user', content: 'files key sun\ntask copy sun to map' },
  ];
  const said: string[] = [];
  while (said.at(-1) !== 'done') {
    const response = await fetch(`${apiBase}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages }),
    });
    expect(response.status).toBe(200);
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    const content = choices[0]?.message.content.trim() ?? '';
    said.push(content);
    messages.push({ role: 'assistant', content }, { role: 'user', content: OBSERVATIONS[said.length - 1] ?? '' });
  }
  return said;
}

it('a trial of a real model is one sequence of the ids it sampled, and its transcript can be read', async () => {
  const { ref } = await project.resolve({ config: REAL });
  const record = await project.records.load(ref);
  const { asked, models } = service();
  await using gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  let said: string[] = [];
  const { runTrial } = createRolloutActivities({
    ...project,
    models,
    gateway,
    rendererOf,
    harbor: async () => ({
      run: async ({ agent }, { secrets }) => {
        said = await playAgent(String(agent.kwargs?.api_base), secrets?.STILLROOM_GATEWAY_KEY ?? '');
        return OUTCOME;
      },
    }),
    trialsDir: async () => project.root,
    memory: new TrialMemory({ reserveBytes: 0 }),
    runnerSecrets: [],
    tasks: project.tasks,
    drain: new AbortController().signal,
  });
  const [task] = record.train;
  const base = { kind: 'base', model: STUDENT, version: STUDENT } as const;
  const spec = {
    run: ref,
    trialId: `${record.trialPrefix}-s0001-000-0` as TrialId,
    task,
    who: 'student',
    model: base,
    maxTurns: 5,
    trains: true,
  };
  const trial = await inActivity('trial', 1, () => runTrial(spec as TrialSpec));

  expect(said).toEqual(TURNS.map(([, text]) => text));
  expect(trial).toMatchObject({ calls: 3, fragmentCauses: {}, maskedTokens: 0, overflow: false, reward: 1 });
  const { spans } = decodeEpisode(await project.blobs.get(trial.spans ?? expect.fail('no spans')));
  const [first, second, third] = spans;
  if (!first || !second || !third) expect.fail('three calls');
  for (const [before, after] of [
    [first, second],
    [second, third],
  ] as const) // prettier-ignore
    expect([...after.prompt].slice(0, before.prompt.length + before.sampled.length)).toEqual([...before.prompt, ...before.sampled]);
  expect(asked.map(({ prompt }) => prompt.length)).toEqual(spans.map(({ prompt }) => prompt.length));
  // Reasoning stays in the history, though the agent dropped it and the template would.
  expect(await tokenizer.decode(third.prompt)).toBe(
    '<|im_start|>system\nYou work in a terminal.<|im_end|>\n<|im_start|>user\nfiles key sun\ntask copy sun to map<|im_end|>\n' +
      `<|im_start|>assistant\n${TURNS[0].join('')}<|im_end|>\n<|im_start|>user\n${OBSERVATIONS[0]}<|im_end|>\n` +
      `<|im_start|>assistant\n${TURNS[1].join('')}<|im_end|>\n<|im_start|>user\n${OBSERVATIONS[1]}<|im_end|>\n<|im_start|>assistant\n`,
  );

  const files = project.folderOf(record);
  const split = { ...trial, fragmentCauses: { retry: 2, branch: 1 } };
  await writeSamples(1, [{ trial: split, score: null }], record, { blobs: project.blobs, files, rendererOf });
  const text = new TextDecoder().decode((await project.objects.get('runs/first/files/samples-step-0001.md')) ?? new Uint8Array());
  expect(text).toContain(`⟦${TURNS[0].join('')}<|im_end|>⟧`);
  expect(text).toContain(`${trial.trialId}: reward 1, done, split: 2 × retry, 1 × branch\n`);
  expect(text).not.toContain('\ufffd');
});

it('preflight compares student and teacher by their real vocabularies and templates', async () => {
  const { ref } = await project.resolve({ config: REAL }, { runId: 'preflight', executionId: 'e2' });
  const { models } = service();
  const { checkModels } = createPreflightActivities({ ...project, models, rendererOf });
  const { checks } = await inActivity('checks', 1, () => checkModels({ run: ref }));
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  const detailOf = (name: string) => checks.find((check) => check.name === name)?.detail;
  const [, ofStudent, ofTeacher] =
    /^student qwen3 \(tokenizer Qwen\/Qwen3-8B, files ([0-9a-f]{12})\), teacher qwen3 \(tokenizer Qwen\/Qwen3-32B, files ([0-9a-f]{12})\)$/.exec(
      detailOf('renderers') ?? '',
    ) ?? expect.fail(detailOf('renderers'));
  expect(ofStudent).toBe(ofTeacher);
  expect(detailOf('vocabulary')).toMatch(/^1516\d\d ids and 5 probe texts read alike$/);
  expect(detailOf('template and stop ids')).toBe('both end turns on ids 151645,151643');
});

it("a name of another family's renderer is refused before anything is asked of the models", async () => {
  const { ref } = await project.resolve(
    { config: REAL.replace(`"${STUDENT}" = "qwen3"`, `"${STUDENT}" = "llama3"`) },
    { runId: 'wrong', executionId: 'e3' },
  );
  const { asked, models } = service();
  const { checkModels } = createPreflightActivities({ ...project, models, rendererOf });
  const { checks } = await inActivity('checks', 1, () => checkModels({ run: ref }));
  expect(checks).toEqual([expect.objectContaining({ name: 'renderers', ok: false })]);
  expect(checks[0]?.detail).toMatch(
    /calls the renderer of Qwen\/Qwen3-8B "llama3".*is of the family hermes, not llama3 or plain\. Correct the name/,
  );
  expect(asked).toEqual([]);
});

it.each([
  ['qwen3', '<|im_start|>assistant\n'],
  ['qwen3_disable_thinking', '<|im_start|>assistant\n<think>\n\n</think>\n\n'],
])('the name %s sets the template as it says', async (name, ending) => {
  const { ref } = await project.resolve(
    { config: REAL.replace(`"${STUDENT}" = "qwen3"`, `"${STUDENT}" = "${name}"`) },
    { runId: name, executionId: name },
  );
  const renderer = await rendererOf(await project.records.load(ref), STUDENT);
  const prompt = await renderer.render([{ role: 'user', content: 'hi' }], { tools: [], addGenerationPrompt: true });
  expect(await tokenizer.decode(prompt)).toBe(`<|im_start|>user\nhi<|im_end|>\n${ending}`);
});

it('a switch that the template does not have is refused by name', async () => {
  const { ref } = await project.resolve(
    { config: REAL.replace(`"${STUDENT}" = "qwen3"`, `"${STUDENT}" = "qwen3_disable_thinking"`) },
    { runId: 'switch', executionId: 'e4' },
  );
  const record = await project.records.load(ref);
  const plain = { ...OFFLINE, cacheDir: project.root };
  const folder = join(project.root, 'plain');
  await project.file('plain/tokenizer.json', '{}');
  await project.file('plain/tokenizer_config.json', '{"chat_template": "<tool_call>{{ messages }}<|im_end|>"}');
  const files = new ModelFiles(plain, { [STUDENT]: { folder } });
  const renderers = new Renderers({ objects: project.objects, files, tokenizerIn: async () => tokenizer });
  await expect(renderers.of(record, STUDENT)).rejects.toThrow(
    /"qwen3_disable_thinking", but the chat template in .*plain has no enable_thinking/,
  );
});
