import { afterEach, beforeEach, expect, it } from 'vitest';
import { createMetricsActivities } from '../../activities/metrics.ts';
import { CONFIG, INPUT, Project } from '../../activities/testing/project.ts';
import { tinyRendererOf } from '../../activities/testing/renderers.ts';
import { FULL_METERS, spendOf } from '../../core/measures/spend.ts';
import { NO_USAGE } from '../../core/measures/usage.ts';
import { confirmCostUpdate, estimateQuery, spendQuery, statusQuery } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { stepResult, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, serverOfFile, startIn, waitsFor } from './runs.ts';

/** `pricing = {}`: the run and everything that reads its config and counts its money are real; trials are not. */

const run = startIn(serverOfFile(localServer));
let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

const UNPRICED = CONFIG.replace(/\[pricing\][^[]*/, '').replace('steps = 3', 'steps = 2\ngroup_size = 1');

/** The activities that know prices, with this much more in the config. */
function priced(more: string): Partial<AllActivities> {
  const { objects, records, blobs, folderOf } = project;
  const inputs = project.inputs();
  const { tallySpend } = createMetricsActivities({ objects, records, blobs, folderOf, rendererOf: tinyRendererOf });
  return {
    ...inputs,
    resolveRun: async ({ runId, executionId }) => {
      const input = { ...INPUT, config: `pricing = {}\n${UNPRICED}${more}`, yes: true };
      const resolved = await inputs.resolveRun({ runId, executionId, input });
      return { ...resolved, plan: { ...resolved.plan, queues: { rollouts: 'rollouts', training: 'training' } } };
    },
    tallySpend,
    runTrial: async (spec) => {
      const { config } = await records.load(spec.run);
      return trialFor(spec, { usd: spendOf(config.pricing, { student_sample: 3 }).usd });
    },
    closeEvaluation: async (order) => ({ ...(await fakeActivities().closeEvaluation(order)), usd: 0, trialUsd: null }),
    closeStep: async (order) => stepResult(order, { trialUsd: null }),
    scoreEpisode: async ({ trialId }) => ({
      trialId,
      scored: null,
      candidates: null,
      ...{ datums: 1, fragments: 0, lossTokens: 3, overflowDropped: false, overlongDropped: false },
      ...NO_USAGE,
      meters: { teacher_prefill: 9 },
      usd: 0,
      trainUsd: 0,
    }),
  };
}

it('no cap: a person is asked whatever `yes` says, every meter is unknown and none is free', async () => {
  await run(priced(''), async (handle) => {
    await waitsFor(handle, 'cost');
    const { waitingFor } = await handle.query(statusQuery);
    expect(waitingFor?.question).toMatch(/^Start this run\? the unknown cost of student_prefill, .*teacher_sample\.$/);
    const estimate = await handle.query(estimateQuery);
    expect(estimate).toMatchObject({
      pricedUsd: 0,
      fullyPriced: false,
      unpricedMeters: expect.arrayContaining([...FULL_METERS.slice(0, 4)]),
    });
    expect(estimate?.lines.map(({ usd }) => usd)).toEqual(estimate?.lines.map(() => null));
    await handle.executeUpdate(confirmCostUpdate, { args: [ask] });
    const { outcome, spend } = await handle.result();
    expect([outcome, spend.usd, spend.blindTo]).toEqual(['accepted', 0, ['student_sample']]);
    expect(spend.lines.map(({ usd }) => usd)).toEqual(spend.lines.map(() => null));
    expect((await handle.describe()).searchAttributes).not.toHaveProperty('StillroomSpentUsd');
  });
});

it('with a cap: nobody is asked, nothing is held back, and it is said from the start what the cap cannot see', async () => {
  await run(priced('[budget]\nmax_usd = 0.000001\n'), async (handle) => {
    const { outcome, spend } = await handle.result();
    expect([outcome, spend.usd, spend.maxUsd]).toEqual(['accepted', 0, 0.000001]);
    const { notices, decisions } = await handle.query(statusQuery);
    expect([decisions, notices]).toEqual([
      [],
      expect.arrayContaining([expect.stringMatching(/no price for .*student_sample.* cap can see/)]),
    ]);
    expect((await handle.query(spendQuery)).blindTo).toEqual(['student_sample']);
  });
});

it('a limit for one trial needs prices: the run is refused by name, before anything', async () => {
  await run(priced('[budget]\nmax_usd = 1\nmax_usd_per_trial = 0.1\n'), async (handle) => {
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'BadRunInput', message: expect.stringMatching(/max_usd_per_trial.*pric/s) },
    });
  });
});
