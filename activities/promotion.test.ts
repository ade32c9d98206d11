import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { SamplerPath, StatePath } from '../core/ids.ts';
import type { GateVerdict } from '../core/run/results.ts';
import { VersionStore } from '../services/stores/version-store.ts';
import { createPromotionActivities } from './promotion.ts';
import { failureOf, Project } from './testing/project.ts';

const ENDPOINT = 'http://127.0.0.1:9/v1';
const WEIGHTS = { samplerPath: 'tinker://m/sampler/final' as SamplerPath, statePath: 'tinker://m/state/final' as StatePath };
const HANDOFF = `[models.agent]
provider = "openai"
model = "tinker://m/sampler/final"
model_type = "stillroom/tiny-student"
endpoint = "${ENDPOINT}"
`;
const evidence = { n: 2, mean: 0.5, pValue: 0.5, interval: { low: 0.1, high: 0.9 }, confidence: 0.95, method: 'exact' } as const;
const VERDICT: GateVerdict = {
  accepted: true,
  reasons: [],
  threshold: 0.7,
  teacher: 1,
  before: 0.25,
  after: 0.75,
  improvement: evidence,
  overThreshold: null,
  protocolHash: 'abcdef0123456789',
  earlierGates: 3,
};

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

function activities() {
  const adapters = new VersionStore(join(project.root, 'adapters'), 'adapter');
  const settingsPath = join(project.root, 'settings.toml');
  return createPromotionActivities({
    records: project.records,
    adapters,
    folderOf: project.folderOf,
    settingsPath,
    servingEndpoint: ENDPOINT,
  });
}

async function order(runId = 'first', executionId = 'e1') {
  const { ref } = await project.resolve({}, { runId, executionId });
  const handoff = { path: 'handoff.toml', toml: HANDOFF };
  return {
    run: ref,
    verdict: VERDICT,
    weights: WEIGHTS,
    handoff,
    steps: 3,
    spend: { usd: 0.1234, blindTo: ['teacher_sample' as const], lines: [], maxUsd: 2 },
  };
}

const text = (path: string) => readFile(join(project.root, path), 'utf8');

it('the handoff is in the run folder, whatever the gate said', async () => {
  const { run, weights } = await order();
  const handoff = await activities().writeHandoff({ run, weights });
  expect(handoff).toEqual({ path: join(project.root, 'runs/first/handoff.toml'), toml: HANDOFF });
  expect(await text('runs/first/handoff.toml')).toBe(HANDOFF);
});

it('an accepted gate leaves a version with card, handoff and record', async () => {
  const adapter = await activities().writeAdapter(await order());
  const path = join(project.root, 'adapters/turn/v1');
  expect(adapter).toEqual({ name: 'turn', version: 1, path });
  expect(await text('adapters/turn/v1/handoff.toml')).toBe(HANDOFF);
  const card = await text('adapters/turn/v1/card.md');
  for (const fact of [
    '# turn v1',
    'run `first` in 3 steps: `stillroom/tiny-student` learned from `stillroom/tiny-teacher`',
    '| student before | 25.0 % |',
    '| student after | 75.0 % |',
    'Gate: accepted, threshold 70.0 %, 2 held-out tasks.',
    '+50.0 points (95 % interval +10.0 to +90.0, p = 0.5000, 2 tasks)',
    '3 gates before this one',
    'Spent $0.1234 under a cap of $2.00, which could not see meters without a price: teacher_sample.',
    WEIGHTS.samplerPath,
    WEIGHTS.statePath,
  ])
    expect(card).toContain(fact);
  expect(JSON.parse(await text('adapters/turn/v1/adapter.json'))).toMatchObject({ runId: 'first', weights: WEIGHTS, verdict: VERDICT });
});

it('writing the same adapter again makes no second version; another run makes one', async () => {
  const again = await order();
  const [first, second] = [await activities().writeAdapter(again), await activities().writeAdapter(again)];
  expect(second).toEqual(first);
  expect(await project.names('adapters/turn')).toEqual(['aliases.toml', 'v1']);
  expect((await activities().writeAdapter(await order('other', 'e2'))).version).toBe(2);
  expect(await text('adapters/turn/aliases.toml')).toContain('champion = 2');
});

it('weights that no agent could load are refused by name, for good, and leave nothing', async () => {
  const { run, weights } = await order();
  const bad = activities().writeHandoff({ run, weights: { ...weights, samplerPath: '/tmp/weights' as SamplerPath } });
  expect(await failureOf(bad)).toMatchObject({
    type: 'HandoffRefused',
    nonRetryable: true,
    message: expect.stringContaining('must start with tinker://'),
  });
  expect(await project.names('runs/first')).not.toContain('handoff.toml');
});

it('promotion points the agent at the adapter in the settings, keeps the rest and names the key', async () => {
  await project.file('settings.toml', '# ours\n[chat]\nchannel = "x"\n');
  const { handoff } = await order();
  const told = await activities().promoteAdapter({ handoff });
  await activities().promoteAdapter({ handoff });
  expect(told).toEqual({ keyVariable: 'OPENAI_API_KEY' });
  expect(await text('settings.toml')).toBe(`# ours\n[chat]\nchannel = "x"\n\n${HANDOFF}`);
});
