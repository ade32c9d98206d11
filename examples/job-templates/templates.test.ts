import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readJobTemplate, sandboxMode, trialConfig } from '../../services/harbor/index.ts';

const templates = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.json'));

test('there is one for each kind of environment that the docs show', () => {
  expect(templates.toSorted()).toEqual(['docker.json', 'e2b.json', 'podman.json', 'process.json']);
});

test.each(templates)('%s is a job template, and all of it reaches the trial', async (name) => {
  const template = await readJobTemplate(join(import.meta.dirname, name));
  const config = trialConfig({
    taskDir: '/tasks/a',
    trialName: 'a',
    trialsDir: '/trials',
    template,
    agent: { name: 'nop' },
    timeouts: { agentMs: 1000 },
  });
  expect(config.environment).toEqual(template.environment);
  const isOurs = name === 'process.json';
  expect(sandboxMode(template)).toBe(isOurs ? 'bwrap' : null);
  // What grades by way of our own sandbox would find none in another.
  expect(config.verifier?.import_path).toBe(isOurs ? 'stillroom_harbor.environment:HostVerifier' : undefined);
  expect('type' in config.environment).toBe(!isOurs);
});
