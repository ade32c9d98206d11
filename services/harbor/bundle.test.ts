import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { contentOf, packTrial, unpackTrial } from './bundle.ts';
import { TrialCrashed } from './errors.ts';
import { readTrialFiles } from './trial-files.ts';

const SECRET = 'sk-"quoted"-and-long';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stillroom-bundle-'));
  for (const name of ['trial', 'trial/agent', 'trial/verifier', 'host']) await mkdir(join(dir, name));
  await write('host/key', 'of the host');
});
afterEach(() => rm(dir, { recursive: true }));

const write = (path: string, content: string | Uint8Array) => writeFile(join(dir, path), content);

async function packed() {
  const bytes = (await packTrial(join(dir, 'trial'), [SECRET])) ?? expect.fail('no folder');
  const { files, leftOut } = await unpackTrial(bytes);
  return { bytes, leftOut, files: new Map(files.map((file) => [file.path, { ...file, text: contentOf(file).toString('utf8') }])) };
}

it("keeps harbor's records without tokens and in compact form", async () => {
  const tokens = Array.from({ length: 20_000 }, (_, at) => at);
  const rollout = [{ prompt_token_ids: [tokens], completion_token_ids: [tokens], logprobs: [tokens] }];
  const result = { trial_name: 't', agent_result: { metadata: { n_turns: 2 }, rollout_details: rollout } };
  await write('trial/result.json', JSON.stringify(result, null, 4));
  await write(
    'trial/agent/trajectory.json',
    JSON.stringify({ steps: [{ message: 'hi', metrics: { prompt_token_ids: tokens, cost_usd: 1 } }] }),
  );
  const { files, bytes } = await packed();
  expect(files.get('result.json')).toMatchObject({
    text: '{"trial_name":"t","agent_result":{"metadata":{"n_turns":2}}}',
    leftOut: 'tokens',
  });
  expect(files.get('agent/trajectory.json')?.text).toBe('{"steps":[{"message":"hi","metrics":{"cost_usd":1}}]}');
  expect(files.get('result.json')?.size).toBeGreaterThan(1_000_000);
  expect(bytes.length).toBeLessThan(1_000);
});

it('keeps a record that was cut short, and bytes that are no text, as they are', async () => {
  const odd = Uint8Array.of(0, 255, 254, 10);
  await write('trial/result.json', '{"trial_name": "t", "agent_res');
  await write('trial/agent/odd.bin', odd);
  const { files } = await packed();
  expect(files.get('result.json')).toMatchObject({ text: '{"trial_name": "t", "agent_res', leftOut: null });
  expect(contentOf(files.get('agent/odd.bin') ?? expect.fail('odd'))).toEqual(Buffer.from(odd));
});

it('of a long file keeps beginning and end, and says what is missing; a huge one is never loaded', async () => {
  await write('trial/trial.log', `first line\n${'x'.repeat(1_000_000)}\nlast line\n`);
  await write('trial/agent/huge', 'begin');
  await truncate(join(dir, 'trial/agent/huge'), 50 * 2 ** 30);
  const { files } = await packed();
  const log = files.get('trial.log') ?? expect.fail('log');
  expect(log).toMatchObject({
    size: 1_000_022,
    leftOut: 'middle',
    text: expect.stringMatching(/^first line\nx+\n\[… 737878 bytes left out …\]\nx+\nlast line\n$/),
  });
  expect(files.get('agent/huge')).toMatchObject({ size: 50 * 2 ** 30, leftOut: 'middle' });
});

it('has no secret in it, neither as it is, nor as JSON has it, nor where a file is cut', async () => {
  const half = 128 * 1024;
  await write('trial/result.json', JSON.stringify({ message: `key ${SECRET}` }));
  await write('trial/trial.log', `told ${SECRET}, and ${JSON.stringify({ key: SECRET })}\n`);
  for (const shift of [1, 5, SECRET.length - 1]) {
    await write(`trial/agent/head-${shift}`, `${'a'.repeat(half - shift)}${SECRET}${'b'.repeat(500_000)}`);
    await write(`trial/agent/tail-${shift}`, `${'a'.repeat(500_000)}${SECRET}${'b'.repeat(half - shift)}`);
  }
  const { files } = await packed();
  expect(files.get('result.json')?.text).toBe('{"message":"key [REDACTED]"}');
  expect(files.get('trial.log')?.text).toBe('told [REDACTED], and {"key":"[REDACTED]"}\n');
  for (const [path, { text }] of files) {
    const shift = Number(path.split('-')[1]);
    if (Number.isNaN(shift)) continue;
    const leak = path.includes('head') ? SECRET.slice(0, shift) : SECRET.slice(-shift);
    expect(text, path).not.toContain(path.includes('head') ? `a${leak}\n` : `\n${leak}b`);
    expect(text, path).not.toContain('quoted');
  }
});

it('has no part of a secret in it where a file is cut behind other secrets, which are longer than what stands for them', async () => {
  const half = 128 * 1024;
  for (const shift of [0, 1, 5, SECRET.length - 1]) {
    const [near, far] = ['a'.repeat(half - SECRET.length + shift), 'b'.repeat(500_000)];
    await write(`trial/agent/head-${shift}`, `${SECRET}${near}${SECRET}${far}`);
    await write(`trial/agent/tail-${shift}`, `${far}${SECRET}${near}${SECRET}`);
  }
  for (const { text } of (await packed()).files.values()) expect(text).not.toMatch(/sk-|quoted|long/);
});

it('follows no link and waits at no pipe', async () => {
  await symlink(join(dir, 'host/key'), join(dir, 'trial/agent/key'));
  await symlink(join(dir, 'host'), join(dir, 'trial/artifacts'));
  execFileSync('mkfifo', [join(dir, 'trial/agent/pipe')]);
  await write('trial/verifier/test-stdout.txt', 'ok\n');
  const { files, leftOut } = await packed();
  expect([...files.keys()]).toEqual(['verifier/test-stdout.txt']);
  expect(leftOut).toBe(3);
});

it('of a great many files keeps the first, those at the top before all others', async () => {
  await Promise.all(Array.from({ length: 1_010 }, (_, at) => write(`trial/agent/f${at}`, '')));
  await write('trial/zzz.log', 'kept');
  const { files, leftOut } = await packed();
  expect(files.get('zzz.log')?.text).toBe('kept');
  expect(files.size + leftOut).toBe(1_012); // the empty folder as well
  expect(files.size).toBeLessThan(1_001);
});

it('is nothing where there is no folder', async () => {
  expect(await packTrial(join(dir, 'nowhere'), [])).toBeNull();
});

it('a result, a report or a trajectory that is a link is none', async () => {
  await write('host/result.json', '{"trial_name": "of the host"}');
  await symlink(join(dir, 'host/result.json'), join(dir, 'trial/result.json'));
  await expect(readTrialFiles(join(dir, 'trial'))).rejects.toThrow(TrialCrashed);
  await rm(join(dir, 'trial/result.json'));
  await write('trial/result.json', '{}');
  await symlink(join(dir, 'host/result.json'), join(dir, 'trial/agent/trajectory.json'));
  await rm(join(dir, 'trial/verifier'), { recursive: true });
  await write('host/ctrf.json', '{}');
  await symlink(join(dir, 'host'), join(dir, 'trial/verifier'));
  expect(await readTrialFiles(join(dir, 'trial'))).toEqual({ result: '{}', testReport: null, trajectory: null, rewardFile: null });
});
