import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TrialId } from '../../core/ids.ts';
import { tinyAsciiRenderer } from '../../services/gateway/renderers/tiny-ascii.ts';
import { turnAgent } from '../../services/harbor/index.ts';
import { TinkerClient } from '../../services/tinker/index.ts';
import { STUDENT, TrainerFixture } from '../trainer-fixture.ts';
import { TerminusSetting, TMUX_IS_HERE } from './terminus-setting.ts';

let trainer: TrainerFixture;
let terminus: TerminusSetting;
let client: TinkerClient;
beforeAll(async () => {
  [trainer, terminus] = await Promise.all([TrainerFixture.start(), TerminusSetting.make()]);
  client = await TinkerClient.connect({ baseUrl: trainer.trainer.url, apiKey: 'tml-dev' });
});
afterAll(async () => {
  await client?.close();
  await Promise.all([trainer?.stop(), terminus?.[Symbol.asyncDispose]()]);
});

const renderer = tinyAsciiRenderer();

/** The model of our own trainer, and what the service says that it takes. */
async function student() {
  const { supportedModels } = await client.capabilities();
  const contextLimitTokens = supportedModels.find(({ modelName }) => modelName === STUDENT)?.maxContextLength ?? Number.NaN;
  return { sampler: await client.sampler({ baseModel: STUDENT }), contextLimitTokens, model: STUDENT };
}

test('our trainer’s model plays with our small agent', async () => {
  const { sampler, contextLimitTokens, model } = await student();
  const trialId = 'small-agent' as TrialId;
  const limits = { contextLimitTokens, maxTokensPerCall: 8, temperature: 1 };
  await using session = terminus.gateway.open({ trialId, modelName: model, sampler, renderer, ...limits });
  const agent = turnAgent({ apiBase: session.apiBase, model, maxTurns: 3, temperature: 1, maxTokens: 8 });
  const config = { ...terminus.setting.config({ model, name: trialId }), agent: { ...agent, override_timeout_sec: 60 } };
  const run = await terminus.runner.run(config, { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: session.apiKey } });
  expect(run).toMatchObject({ executed: true, exceptionType: null });
  expect(session.record()).toMatchObject({ calls: run.agentTurns, fragments: { first: 1 }, failure: null, overflow: false });
  expect(run.agentTurns).toBeGreaterThan(0);
});

if (TMUX_IS_HERE)
  test('and its window of 192 tokens is full with terminus-2’s first message: the trial is graded, and nothing was sampled', async () => {
    const { sampler, contextLimitTokens, model } = await student();
    expect(contextLimitTokens).toBe(192);
    const limits = { contextLimitTokens, model };
    const { session, ...run } = await terminus.play({ sampler, renderer, agent: limits, gateway: { contextLimitTokens } });
    expect(run).toMatchObject({ reward: 0, executed: true, exceptionType: null, stopReason: 'overflow' });
    expect(session.record()).toMatchObject({ calls: 0, overflow: true, failure: null });
  });
