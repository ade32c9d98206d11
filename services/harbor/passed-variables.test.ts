import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { passedVariables } from './passed-variables.ts';

test('harbor gets what environments look for, and none of the keys that are not theirs', () => {
  const wanted = { E2B_API_KEY: 'a', DOCKER_HOST: 'b', KUBECONFIG: 'c', MODAL_TOKEN_ID: 'd' };
  const kept = {
    TINKER_API_KEY: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
    OPENAI_API_KEY: 'x',
    TEMPORAL_API_KEY: 'x',
    E2B: 'x',
    HOME: 'x',
    HFX: 'x',
  };
  expect(passedVariables({ ...wanted, ...kept }, '/nowhere')).toEqual(wanted);
  const more = { ...kept, STILLROOM_HARBOR_ENV: 'AWS_SECRET_ACCESS_KEY, NOT_SET' };
  expect(passedVariables(more, '/nowhere')).toEqual({ AWS_SECRET_ACCESS_KEY: 'x' });
});

test("Docker finds the worker's own settings, though harbor has a private HOME, unless it is told otherwise", async () => {
  const home = await mkdtemp(join(tmpdir(), 'stillroom-home-'));
  await mkdir(join(home, '.docker'));
  expect(passedVariables({}, home)).toEqual({ DOCKER_CONFIG: join(home, '.docker') });
  expect(passedVariables({ DOCKER_CONFIG: '/other' }, home)).toEqual({ DOCKER_CONFIG: '/other' });
  await rm(home, { recursive: true });
});
