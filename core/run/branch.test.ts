import { describe, expect, it } from 'vitest';
import { parseRunConfig, type RunConfig } from '../config/index.ts';
import type { StatePath } from '../ids.ts';
import { type BranchSource, findBranch, type LoadSource, parseFrom, seenProblem } from './branch.ts';

const TOML = `
[student]
base_model = "s"
lora_rank = 8
[teacher]
model = "t"
[harbor]
job_template = "job.json"
[rollout.renderers]
"s" = "qwen3"
`;

function configOf(text: string): RunConfig {
  const parsed = parseRunConfig(text, 'run.toml');
  if (!parsed.ok) throw new Error(parsed.errors.map(({ message }) => message).join());
  return parsed.config;
}
const CONFIG = configOf(TOML);

const state = (name: string, updates: number) => ({ name, path: `tinker://m/weights/${name}` as StatePath, updates, savedAtMs: updates });

function source(known: Partial<BranchSource> = {}): BranchSource {
  return {
    runId: 'old',
    executionId: 'e',
    config: CONFIG,
    train: [{ id: 'a', contentDigest: 'da' }],
    branch: null,
    states: [state('warmup', 2), state('step-0002', 4), state('step-0003', 6), state('step-0003-2', 6)],
    tripped: null,
    ...known,
  };
}

const stored =
  (...sources: readonly BranchSource[]): LoadSource =>
  async (runId) =>
    sources.find((one) => one.runId === runId) ?? (runId === 'empty' ? 'collected' : 'unknown');

const find = (given: string, known: Partial<BranchSource> = {}, config = CONFIG) => findBranch(given, config, stored(source(known)));

describe('what is named', () => {
  it.each([
    ['tinker://m:train:0/weights/step-0003', { kind: 'path', path: 'tinker://m:train:0/weights/step-0003' }],
    ['run-1.b', { kind: 'run', runId: 'run-1.b', state: null }],
    ['run-1@step-3', { kind: 'run', runId: 'run-1', state: 'step-3' }],
  ])('%s', (given, from) => expect(parseFrom(given)).toEqual(from));

  it.each([
    ['tinker://m/sampler_weights/step-0003', /sampler weights can be sampled from, not trained on/],
    ['tinker://m/step-0003', /names no training state/],
    ['https://example.org/weights/x', /names no training state/],
    ['old@', /must be a run's id/],
    ['../old', /must be a run's id/],
    [' ', /must be a run's id/],
  ])('%j is nothing to start from', (given, reason) => expect(() => parseFrom(given)).toThrow(reason));
});

describe('the state that is found', () => {
  it('is the last that the run saved, with where it comes from', async () => {
    expect(await find('old')).toMatchObject({
      branch: {
        statePath: 'tinker://m/weights/step-0003-2',
        updates: 6,
        source: { runId: 'old', executionId: 'e', state: 'step-0003-2', savedAtMs: 6 },
      },
      trainedBy: [{ runId: 'old' }],
      warnings: [],
    });
  });

  it.each([
    ['old@step-2', 'step-0002'],
    ['old@step-0002', 'step-0002'],
    ['old@step-3', 'step-0003-2'],
    ['old@warmup', 'warmup'],
  ])('%s is %s', async (given, name) => expect((await find(given)).branch.source?.state).toBe(name));

  it('is the one from before the degeneration where the tripwire stopped the run, unless one is named', async () => {
    const tripped = { restoreFrom: 'tinker://m/weights/step-0002' };
    expect((await find('old', { tripped })).branch.source?.state).toBe('step-0002');
    expect((await find('old@step-3', { tripped })).branch.source?.state).toBe('step-0003-2');
    await expect(find('old', { tripped: { restoreFrom: null } })).rejects.toThrow(/stopped by its tripwire.*old@step-0003/);
  });

  it('is any path, of which nobody knows what it was trained on', async () => {
    const { branch, warnings } = await find('tinker://x/weights/y');
    expect(branch).toEqual({ statePath: 'tinker://x/weights/y', updates: 0, source: null });
    expect(warnings).toEqual([expect.stringMatching(/nobody knows what tinker:\/\/x\/weights\/y was trained on/)]);
  });

  it.each<[string, string, Partial<BranchSource>, RegExp]>([
    ['a run that never was', 'nobody', {}, /^the store knows no run nobody$/],
    ['a run that was collected', 'empty', {}, /keeps nothing of run empty any more; .*tinker:\/\//],
    ['a run that saved nothing', 'old', { states: [] }, /^run old has saved no training state$/],
    ['a step that was not saved', 'old@step-9', {}, /saved no state step-9; it has saved warmup, step-0002, step-0003$/],
  ])('is none for %s', (_, given, known, reason) => expect(find(given, known)).rejects.toThrow(reason));
});

describe('a config that does not fit is refused, each field with both values', () => {
  it.each([
    [
      'another base model',
      TOML.replace('base_model = "s"', 'base_model = "z"').replace('"s" =', '"z" ='),
      /student\.base_model is "z" and was "s" in old/,
    ],
    ['another rank', TOML.replace('lora_rank = 8', 'lora_rank = 16'), /^student\.lora_rank is 16 and was 8 in old: it must be the same$/],
    ['another renderer', TOML.replace('"qwen3"', '"llama3"'), /rollout\.renderers\."s" is "llama3" and was "qwen3" in old/],
    ['a renderer that is not set', TOML.replace('"s" = "qwen3"', ''), /rollout\.renderers\."s" is not set and was "qwen3"/],
    ['a warm-up', `${TOML}[warmup]\nsteps = 3\n`, /^warmup\.steps is 3, .*set it to 0$/],
  ])('%s', (_, toml, reason) => expect(find('old', {}, configOf(toml))).rejects.toThrow(reason));

  it('other learning rates, losses and teachers are the new run’s own affair', async () => {
    const config = configOf(`${TOML.replace('model = "t"', 'model = "u"')}[train]\nlearning_rate = 0.5\nloss = "ppo"\n`);
    expect((await find('old', {}, config)).branch.updates).toBe(6);
  });
});

describe('held-out tasks', () => {
  const first = source({ runId: 'first', train: [{ id: 'z', contentDigest: 'dz' }] });
  const branchOf = (runId: string) => ({
    statePath: 'tinker://m/weights/q' as StatePath,
    updates: 1,
    source: { runId, executionId: 'e', state: 'q', savedAtMs: 0 },
  });

  it('may not be among those that the weights were trained on, by any run before it, under any name', async () => {
    const { trainedBy, warnings } = await findBranch('old', CONFIG, stored(source({ branch: branchOf('first') }), first));
    expect(warnings).toEqual([]);
    expect(seenProblem(trainedBy, [{ id: 'x', contentDigest: 'dx' }])).toBeNull();
    expect(seenProblem(trainedBy, [{ id: 'a' }, { id: 'twin', contentDigest: 'dz' }])).toMatch(
      /trained on held-out tasks: a \(run old\), twin = z \(run first\)\./,
    );
  });

  it('cannot be checked against runs that the store has lost: the run says so', async () => {
    const { trainedBy, warnings } = await find('old', { branch: branchOf('gone') });
    expect(trainedBy.map(({ runId }) => runId)).toEqual(['old']);
    expect(warnings).toEqual([expect.stringMatching(/^old started from q of run gone .*not known here/)]);
  });
});
