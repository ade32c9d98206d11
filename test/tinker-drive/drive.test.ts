import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import getPort from 'get-port';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { trainerFolders } from '../support/trainer-folders.ts';
import { STUDENT } from '../trainer-fixture.ts';
import { startTrainerProcess, type Trainer, WireClient } from '../trainer-process.ts';
import type { DriveResults, StepRecord } from './recorder.ts';
import { STEPS } from './step-names.ts';

const PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url));
/** What the official client's recordings of the same calls hold. */
const RECORDED = fileURLToPath(new URL('../fixtures/tinker/results.skyrl-0.4.0.sdk-0.38.0-shimmed.json', import.meta.url));

const { folder, weights } = trainerFolders('tinker-drive');
let trainer: Trainer;

beforeAll(async () => {
  trainer = await startTrainerProcess({ state: join(folder, 'state'), weights });
});

afterAll(() => trainer.kill('SIGTERM'));

const run = (args: readonly string[], env: Record<string, string> = {}) =>
  execa(process.execPath, [PROGRAM, ...args], { reject: false, env: { TINKER_API_KEY: '', TINKER_CREDENTIAL_CMD: '', ...env } });
/** What the trainer lists of all that was saved. */
const saved = async () => (await new WireClient(trainer.url).send('GET', 'checkpoints')).body.checkpoints;
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as DriveResults;

describe('against the embedded trainer', () => {
  let results: DriveResults;
  let output: string;
  const out = join(folder, 'results.json');

  beforeAll(async () => {
    const { exitCode, stdout, stderr } = await run(['--base-url', trainer.url, '--model', STUDENT, '--out', out]);
    expect(exitCode, stderr).toBe(0);
    output = stdout;
    results = read(out);
  });

  const step = (name: string) => results.steps.find((record) => record.step === name) as StepRecord & { result: never };

  test('the steps are the recorded ones, in their order', () => {
    expect(results.sdk).toMatch(/^stillroom-\d/);
    expect(results.steps.map(({ step }) => step)).toEqual(read(RECORDED).steps.map(({ step }) => step));
    expect(results.steps.map(({ step }) => step)).toEqual(STEPS);
    expect(output).toContain('so the key is tml-dev');
    expect(output).toMatch(/^optim_step_adam ok [\d.]+$/m);
  });

  test('every step works but the two losses that the trainer does not have', () => {
    const failed = results.steps.filter(({ error }) => error !== undefined);
    expect(failed.map(({ step }) => step)).toEqual(['forward_backward_cispo', 'forward_backward_dro']);
    for (const { error } of failed) expect(error).toMatch(/^BadRequest: .*(cispo|dro)/);
  });

  test('the last line says how it went', () => {
    const { length } = STEPS;
    expect(output.split('\n').at(-1)).toBe(`${length - 2} of ${length} steps answered, 2 refused or failed (see ${out})`);
  });

  test('nothing that it saved stays', async () => {
    expect(step('list_checkpoints').result).toMatchObject({ checkpoints: expect.arrayContaining([expect.anything()]) });
    expect(await saved()).toEqual([]);
    expect(output).not.toContain('left with the service');
  });

  test('results have the recorded shape', () => {
    const recorded = new Map(read(RECORDED).steps.map((record) => [record.step, record.result]));
    for (const name of [
      'get_info',
      'list_checkpoints',
      'get_training_run',
      'list_training_runs',
      'weights_info',
      'sample_seed42_n2',
      'save_state',
    ]) {
      expect(keysOf(step(name).result), name).toEqual(expect.arrayContaining(keysOf(recorded.get(name))));
    }
  });

  test('the numbers hang together', () => {
    expect(step('forward_after_load_state').result).toEqual(step('create_training_client_from_state').result);
    expect(step('sample_seed42_n2').result).toMatchObject({ sequences: tokensOf(step('sample_seed42_n2_again').result) });
    const [before, after] = ['forward_cross_entropy', 'forward_cross_entropy_after'].map((name) => lossOf(step(name).result));
    expect(after).toBeLessThan(before ?? 0);
    expect(step('compute_logprobs').result).toHaveLength(7);
    expect(step('compute_logprobs').result[0]).toBeNull();
  });
});

test('a state that no step deletes is withdrawn and deleted all the same', async () => {
  const out = join(folder, 'kept.json');
  const { exitCode } = await run(['--base-url', trainer.url, '--model', STUDENT, '--out', out, '--skip', 'delete_checkpoint']);
  expect(exitCode).toBe(0);
  expect(read(out).steps.find(({ step }) => step === 'publish_checkpoint')).toMatchObject({ result: null });
  expect(await saved()).toEqual([]);
});

test('steps can be left out; what needs them says so', async () => {
  const out = join(folder, 'skipped.json');
  const left = read(RECORDED)
    .steps.map(({ step }) => step)
    .filter((name) => name !== 'optim_step_adam' && name !== 'get_server_capabilities');
  const { exitCode, stdout } = await run(['--base-url', trainer.url, '--model', STUDENT, '--out', out, '--skip', left.join(',')], {
    TINKER_API_KEY: 'tml-x',
  });
  expect(exitCode).toBe(0);
  expect(stdout.split('\n').at(-1)).toBe(`1 of 2 steps answered, 0 refused or failed, 1 not run (see ${out})`);
  expect(read(out).steps.map(({ step, error }) => [step, error])).toEqual([
    ['get_server_capabilities', undefined],
    ['optim_step_adam', 'not run: it needs create_lora_training_client'],
  ]);
});

test.each([
  [['--model', 'm', '--out', 'o'], '--base-url'],
  [['--base-url', 'nowhere', '--model', 'm', '--out', 'o'], 'must be an http or https address'],
  [['--base-url', 'http://127.0.0.1:1', '--model', 'm', '--out', 'o', '--training-bodies', 'xml'], 'protobuf, json'],
  [['--base-url', 'http://tinker.invalid', '--model', 'm', '--out', 'o'], 'TINKER_API_KEY'],
  [['--base-url', 'http://127.0.0.1:1', '--model', 'm', '--out', 'o', '--step-timeout', '0'], 'above 0'],
  [
    ['--base-url', 'http://127.0.0.1:1', '--model', 'm', '--out', 'o', '--skip', 'get_info,get_inof'],
    'no step is called get_inof; the steps are:',
  ],
  [['--base-url', 'http://127.0.0.1:1', '--model', 'm', '--out', join(folder, 'none', 'o')], 'no such file or directory'],
  [['--base-url', 'http://127.0.0.1:1', '--model', 'm', '--out', folder], 'is a folder'],
])('bad settings %j: exit 2', async (args, said) => {
  const { exitCode, stderr } = await run(args);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(said)]);
});

test('a service that is not there: exit 1', async () => {
  const args = ['--base-url', `http://127.0.0.1:${await getPort()}`, '--model', 'm', '--out', join(folder, 'none.json')];
  args.push('--patience', '0.5');
  const { exitCode, stderr } = await run(args);
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('no answer from the service')]);
}, 30_000);

test('a service that dies midway: exit 1, saying since when, with what there is written', async () => {
  const doomed = await startTrainerProcess({ state: join(folder, 'doomed'), weights });
  const out = join(folder, 'midway.json');
  const driving = run(['--base-url', doomed.url, '--model', STUDENT, '--out', out, '--patience', '1']);
  while (!existsSync(out) || read(out).steps.length < 4) await sleep(20);
  await doomed.kill('SIGKILL');
  const { exitCode, stderr } = await driving;
  const { steps } = read(out);
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringContaining(
      `the service has given no sign of life since '${steps.at(-1)?.step}'; what it was asked until then is in ${out}`,
    ),
  ]);
  expect(steps.filter(({ error }) => error !== undefined)).toHaveLength(1);
  expect(readdirSync(folder).filter((name) => name.endsWith('.partial'))).toEqual([]);
}, 30_000);

function keysOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : keysOf(value[0], `${path}[]`);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [`${path}.${key}`, ...keysOf(inner, `${path}.${key}`)]);
}

/** Without the ids, which differ from call to call. */
function tokensOf({ sequences }: { sequences: { tokens: number[]; logprobs: number[] }[] }) {
  return sequences.map(({ tokens, logprobs }) => ({ tokens, logprobs }));
}

function lossOf({ metrics }: { metrics: Record<string, number> }): number {
  return metrics['loss:sum'] ?? Number.NaN;
}
