import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKeptTrialsActivities } from '../activities/kept-trials.ts';
import { createMetricsActivities } from '../activities/metrics.ts';
import { ModelAccess } from '../activities/model-access.ts';
import { createTeacherActivities } from '../activities/teacher.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { createTrainingActivities } from '../activities/training.ts';
import type { BlobRef, SamplerPath, TrialId } from '../core/ids.ts';
import { trialFigures } from '../core/measures/trial-figures.ts';
import { seededRandom } from '../core/random/seeded.ts';
import type { PlayedSlot } from '../core/run/kept-trials.ts';
import { NO_GUARD_STATE } from '../core/run/results.ts';
import { trialOf } from '../core/run/testing/facts.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { Span } from '../core/tokens/span.ts';
import { TinkerClient } from '../services/tinker/index.ts';
import { FakeService, ONE_SAMPLE, sampleReply } from '../services/tinker/testing/fake-service.ts';
import { decodeForwardBackwardRequest } from '../services/tinker/wire/index.ts';

/** A batch as large as long tasks make it, through every hop from recorded calls to a metrics row. */
const EPISODES = 64;
const CALLS = 20;
const OBSERVED = 1_000;
const SAMPLED = 1_000;
const TOKENS = CALLS * (OBSERVED + SAMPLED);
const VOCABULARY = 150_000;
const SAMPLER = 'step-0000';
const SAMPLED_IN_PASSING = ONE_SAMPLE.sequences[0]?.tokens.length ?? 0;
const STEP = 1;

let service: FakeService;
let project: Project;
let models: ModelAccess;
beforeAll(async () => {
  service = await FakeService.start();
  project = await Project.make();
  models = new ModelAccess(() => TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-local-test' }));
});
afterAll(async () => {
  await models[Symbol.asyncDispose]();
  await project[Symbol.asyncDispose]();
  await service.stop();
});

const inActivity = <T>(work: () => Promise<T>): Promise<T> => new MockActivityEnvironment().run(work);
const config = CONFIG.replace('context_budget_tokens = 1024', 'context_budget_tokens = 65536').replace(
  'max_tokens = 28',
  'max_tokens = 8192',
);

/** One conversation, in which each prompt goes on where the last answer ended. */
function spansOf(episode: number): Span[] {
  const random = seededRandom(BigInt(episode));
  const conversation = Int32Array.from({ length: TOKENS }, () => random.below(VOCABULARY));
  return Array.from({ length: CALLS }, (_, callIndex) => {
    const from = callIndex * (OBSERVED + SAMPLED) + OBSERVED;
    const logprobs = Float64Array.from({ length: SAMPLED }, () => -random.below(1000) / 250);
    const sampled = conversation.subarray(from, from + SAMPLED);
    return { callIndex, prompt: conversation.subarray(0, from), sampled, logprobs, stop: 'stop', sampler: SAMPLER };
  });
}

async function played(run: BlobRef, episode: number): Promise<PlayedSlot> {
  const { records, blobs, objects } = project;
  const trialId = `t${String(episode).padStart(3, '0')}` as TrialId;
  const spans = spansOf(episode);
  const kept = await blobs.of('first').put(encodeEpisode({ trial: trialId, spans, stopReason: 'submitted' }));
  const figures = trialFigures(spans, { maxTokens: 8192, who: 'student' });
  const trial = trialOf({ ...figures, trialId, spans: kept, lost: [] });
  const order = { run, trialId, spans: kept, stopReason: 'submitted', sampler: SAMPLER };
  const score = await inActivity(() => createTeacherActivities({ records, blobs, objects, models }).scoreEpisode(order));
  return { slot: trialId, trial, score };
}

it(`${EPISODES} episodes of ${TOKENS} tokens: each token is scored, trained on and counted once`, async () => {
  const { records, blobs, objects, folderOf } = project;
  const { ref: run } = await project.resolve({ config });
  service.sampled = sampleReply({ promptLogprobs: new Float32Array(TOKENS).fill(-0.75), promptCacheHitTokens: 0 });
  const trials: PlayedSlot[] = [];
  for (let episode = 0; episode < EPISODES; episode++) trials.push(await played(run, episode));
  const list = await createKeptTrialsActivities({ records, blobs }).keepTrials({ run, trials });
  const kept = { lists: [list], count: EPISODES };

  const activities = createTrainingActivities({ records, blobs, objects, models });
  const training = await inActivity(() => activities.openTraining({ run }));
  const train = await inActivity(() => activities.trainBatch({ run, step: STEP, sampler: SAMPLER, training, trials: kept }));
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

  const { row, ...result } = await createMetricsActivities({ records, blobs, objects, folderOf }).closeStep({
    run,
    step: STEP,
    tasks: 8,
    sampler: { version: SAMPLER, path: 'tinker://s/sampler_weights/step-0000' as SamplerPath, stalenessSteps: 0 },
    guard: NO_GUARD_STATE,
    money: { spentUsd: 0, stepUsd: [], stepsAhead: 0, evaluationsAheadUsd: 0 },
    trials: kept,
    train,
    startedAtMs: Date.now(),
  });
  expect(row).toMatchObject({
    trials: EPISODES,
    datums: EPISODES,
    loss_tokens: sampled,
    context_tokens: context,
    mean_generation_tokens: CALLS * SAMPLED,
  });
  expect(result.sent).toEqual({
    promptTokens: EPISODES * ((CALLS * OBSERVED * (CALLS + 1)) / 2 + (SAMPLED * CALLS * (CALLS - 1)) / 2),
    // A service cannot score without sampling something.
    sampledTokens: sampled + EPISODES * SAMPLED_IN_PASSING,
    scoredTokens: EPISODES * TOKENS,
    trainedTokens: EPISODES * TOKENS,
  });
}, 240_000);
