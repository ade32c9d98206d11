import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKeptTrialsActivities } from '../activities/kept-trials.ts';
import { createMetricsActivities } from '../activities/metrics.ts';
import { ModelAccess } from '../activities/model-access.ts';
import { createTeacherActivities } from '../activities/teacher.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { tinyRendererOf } from '../activities/testing/renderers.ts';
import { createTrainingActivities } from '../activities/training.ts';
import type { BlobRef, SamplerPath, TrialId } from '../core/ids.ts';
import { trialFigures } from '../core/measures/trial-figures.ts';
import { seededRandom } from '../core/random/seeded.ts';
import type { PlayedSlot } from '../core/run/kept-trials.ts';
import { NO_GUARD_STATE } from '../core/run/results.ts';
import { trialOf } from '../core/run/testing/facts.ts';
import type { TrialSummary } from '../core/run/trial.ts';
import { decodeEpisode, encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { Span } from '../core/tokens/span.ts';
import { type Gateway, startGateway } from '../services/gateway/index.ts';
import { payloadConverter } from '../services/temporal/payload-converter.ts';
import { guarded } from '../services/temporal/payload-guard.ts';
import { TinkerClient } from '../services/tinker/index.ts';
import { FakeService, sampleReply } from '../services/tinker/testing/fake-service.ts';
import { decodeForwardBackwardRequest } from '../services/tinker/wire/index.ts';
import { idsOf, played, VOCABULARY } from './large-batch/played.ts';

/** A batch as large as long tasks make it, through every hop: from an agent's requests to the gateway to a metrics row. */
const EPISODES = 64;
/** So many of them are played through the gateway, a second each; the others are recorded alike. */
const PLAYED = 6;
const CALLS = 20;
const OBSERVED = 1_000;
const SAMPLED = 1_000;
const TOKENS = CALLS * (OBSERVED + SAMPLED);
const STEP = 1;
const MODEL = {
  kind: 'sampler',
  model: 'stillroom/tiny-student',
  path: 'tinker://s/sampler_weights/step-0000' as SamplerPath,
  version: 'step-0000',
} as const;
/** What the teacher samples in a call that is for its scores: the protocol has no call that samples nothing, and a sampled token is billed. */
const SAMPLED_WITH_SCORES = Int32Array.of(7);

let service: FakeService;
let project: Project;
let models: ModelAccess;
let gateway: Gateway;
beforeAll(async () => {
  service = await FakeService.start();
  project = await Project.make();
  models = new ModelAccess(() => TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-local-test' }));
  gateway = await startGateway({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await gateway.close();
  await models[Symbol.asyncDispose]();
  await project[Symbol.asyncDispose]();
  await service.stop();
});

/** An activity as it is called: what goes in and comes out is guarded, and is what is left of it after a message. */
async function inActivity<Order, R>(activity: (order: Order) => Promise<R>, order: Order): Promise<R> {
  const sent = <T>(value: T, direction: 'input' | 'result') =>
    payloadConverter.fromPayload<T>(guarded(value, { of: activity.name, direction }).payload);
  const made: R = await new MockActivityEnvironment().run(activity, sent(order, 'input'));
  return sent(made, 'result');
}
const config = CONFIG.replace('context_budget_tokens = 1024', 'context_budget_tokens = 65536').replace(
  'max_tokens = 28',
  'max_tokens = 8192',
);

/** What the service samples: a line of other letters each time. */
function nextSample(random: ReturnType<typeof seededRandom>): Int32Array {
  const tokens = idsOf(`${Array.from({ length: SAMPLED - 1 }, () => String.fromCharCode(97 + random.below(26))).join('')}\n`);
  const logprobs = Float32Array.from(tokens, () => -random.below(1000) / 250);
  service.sampled = sampleReply({ sequences: [{ tokens, logprobs, stopReason: 'stop', topk: null }], promptCacheHitTokens: 0 });
  return tokens;
}

/** One conversation, in which each prompt goes on where the last answer ended. Its messages end in a newline and the prompt sign. */
async function sampleTrial({ run, trialId, episode }: { run: BlobRef; trialId: TrialId; episode: number }): Promise<TrialSummary> {
  const random = seededRandom(BigInt(episode));
  const said: Int32Array[] = [];
  const inner = models.tokenSampler(MODEL);
  const sampler = {
    version: inner.version,
    sample: async (request: Parameters<typeof inner.sample>[0]) => {
      said.push(nextSample(random));
      return inner.sample(request);
    },
  };
  const observations = Array.from({ length: CALLS }, (_, call) => `${episode} ${call} `.padEnd(OBSERVED - 3, 'observed '));
  const record = await project.records.load(run);
  const summary = await played({ project, record, gateway, sampler, model: MODEL }, { run, trialId }, observations);
  if (summary.spans === null) throw new Error('nothing was kept of the trial');
  const { spans } = decodeEpisode(await project.blobs.get(summary.spans));
  expect(spans.map(({ sampled }) => sampled)).toEqual(said);
  expect(spans.map(({ prompt }) => prompt.length)).toEqual(Array.from({ length: CALLS }, (_, i) => i * (OBSERVED + SAMPLED) + OBSERVED));
  return summary;
}

/** The same without an agent. */
async function recordTrial({ run, trialId, episode }: { run: BlobRef; trialId: TrialId; episode: number }): Promise<TrialSummary> {
  const random = seededRandom(BigInt(episode));
  const conversation = Int32Array.from({ length: TOKENS }, () => random.below(VOCABULARY));
  const spans = Array.from({ length: CALLS }, (_, callIndex): Span => {
    const from = callIndex * (OBSERVED + SAMPLED) + OBSERVED;
    const logprobs = Float64Array.from({ length: SAMPLED }, () => -random.below(1000) / 250);
    const sampled = conversation.subarray(from, from + SAMPLED);
    return { callIndex, prompt: conversation.subarray(0, from), sampled, logprobs, stop: 'stop', sampler: MODEL.version };
  });
  const { runId, config } = await project.records.load(run);
  const kept = await project.blobs.of(runId).put(encodeEpisode({ trial: trialId, spans, stopReason: 'submitted' }));
  return trialOf({ ...trialFigures(spans, { maxTokens: config.sampling.max_tokens, who: 'student' }), trialId, spans: kept, lost: [] });
}

async function filled(run: BlobRef, episode: number): Promise<PlayedSlot> {
  const { records, blobs, objects } = project;
  const trialId = `t-s0001-${String(episode).padStart(3, '0')}-0` as TrialId;
  const trial = await inActivity(episode < PLAYED ? sampleTrial : recordTrial, { run, trialId, episode });
  const promptLogprobs = new Float32Array(TOKENS).fill(-0.75);
  const sequences = [
    { tokens: SAMPLED_WITH_SCORES, logprobs: Float32Array.from(SAMPLED_WITH_SCORES, () => -1), stopReason: 'length' as const, topk: null },
  ];
  service.sampled = sampleReply({ sequences, promptLogprobs, promptCacheHitTokens: 0 });
  const order = { run, trialId, spans: trial.spans as BlobRef, stopReason: 'submitted', sampler: MODEL.version };
  const score = await inActivity(createTeacherActivities({ records, blobs, objects, models }).scoreEpisode, order);
  // Requests are looked at no more: a thousand of them with their prompts would fill the memory.
  service.seen.length = 0;
  return { slot: trialId, trial, score };
}

it(`${EPISODES} episodes of ${TOKENS} tokens: each token is scored, trained on and counted once`, async () => {
  const { records, blobs, objects, folderOf } = project;
  const { ref: run } = await project.resolve({ config });
  const trials: PlayedSlot[] = [];
  for (let episode = 0; episode < EPISODES; episode++) trials.push(await filled(run, episode));
  const list = await inActivity(createKeptTrialsActivities({ records, blobs }).keepTrials, { run, trials });
  const kept = { lists: [list], count: EPISODES };

  const activities = createTrainingActivities({ records, blobs, objects, models });
  const training = await inActivity(activities.openTraining, { run });
  const train = await inActivity(activities.trainBatch, { run, step: STEP, sampler: MODEL.version, training, trials: kept });
  const sampled = EPISODES * CALLS * SAMPLED;
  const context = EPISODES * CALLS * OBSERVED;
  expect(train.trained).toMatchObject({
    datums: EPISODES,
    lossTokens: sampled,
    contextTokens: context,
    klTokens: sampled,
    mismatchDrops: 0,
  });
  expect(train.meters).toEqual({ student_train: EPISODES * TOKENS });

  const bodies = service.to('forward_backward').map(({ bytes }) => decodeForwardBackwardRequest(bytes).datums);
  const lengths = bodies.flat().map(({ modelInput: [chunk] }) => (chunk?.type === 'encoded_text' ? chunk.tokens.length : 0));
  expect(lengths).toEqual(Array.from({ length: EPISODES }, () => TOKENS - 1));

  const { row, ...result } = await inActivity(
    createMetricsActivities({ records, blobs, objects, folderOf, rendererOf: tinyRendererOf }).closeStep,
    {
      run,
      step: STEP,
      tasks: 8,
      sampler: { version: MODEL.version, path: MODEL.path, stalenessSteps: 0 },
      guard: NO_GUARD_STATE,
      money: { spentUsd: 0, stepUsd: [], stepsAhead: 0, evaluationsAheadUsd: 0 },
      trials: kept,
      train,
      startedAtMs: Date.now(),
    },
  );
  expect(row).toMatchObject({
    trials: EPISODES,
    datums: EPISODES,
    loss_tokens: sampled,
    context_tokens: context,
    mean_generation_tokens: CALLS * SAMPLED,
  });
  expect(result.sent).toEqual({
    promptTokens: EPISODES * ((CALLS * OBSERVED * (CALLS + 1)) / 2 + (SAMPLED * CALLS * (CALLS - 1)) / 2),
    sampledTokens: sampled + EPISODES * SAMPLED_WITH_SCORES.length,
    scoredTokens: EPISODES * TOKENS,
    trainedTokens: EPISODES * TOKENS,
  });
  console.log(
    `memory at most: ${Math.round(process.resourceUsage().maxRSS / 1024)} MB; the largest body ${Math.max(...service.to('forward_backward').map(({ bytes }) => bytes.length))} bytes`,
  );
}, 240_000);
