import { expect, it } from 'vitest';
import { runnerVariables } from './runner-variables.ts';

const WORKER = {
  TINKER_API_KEY: 'tml-the-service',
  AWS_SECRET_ACCESS_KEY: 'of the blob store',
  TEMPORAL_API_KEY: 'of the cluster',
  HOME: '/home/somebody',
  PYTHONPATH: '/elsewhere',
  E2B_API_KEY: 'e2b-key-123',
  DOCKER_HOST: 'unix:///var/run/docker.sock',
  HTTPS_PROXY: 'http://me:pass-word@proxy.test:3128',
  GRADER_CODE: 'grader-123',
  SHORT: 'on',
};

it('a runner gets what harbor reads and what the settings name, and nothing else', () => {
  const { env, secrets } = runnerVariables(['GRADER_CODE', 'SHORT', 'ABSENT'], WORKER);
  expect(Object.keys(env).sort()).toEqual(['DOCKER_HOST', 'E2B_API_KEY', 'GRADER_CODE', 'HTTPS_PROXY', 'SHORT']);
  expect([...secrets].sort()).toEqual(['e2b-key-123', 'grader-123', 'pass-word']);
});

it('never gets the key of the service, whoever names it', () => {
  expect(runnerVariables(['TINKER_API_KEY', 'TEMPORAL_API_KEY', 'HOME', 'PYTHONPATH'], WORKER).env).toEqual(
    runnerVariables([], WORKER).env,
  );
});
