import { join } from 'node:path';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../services/processes/index.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import { registerSearchAttributes, SearchAttributesMissing } from '../services/temporal/search-attributes.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/search-attributes.ts';
import { bareServer } from './workflow/environment.ts';

/** What a worker says, and with which exit code it ends, when there is no use to begin. */

let env: TestWorkflowEnvironment;
let address: string;
beforeAll(async () => {
  env = await bareServer();
  address = env.address;
});
afterAll(() => env?.teardown());

/** A namespace of its own, in which nothing is registered. */
async function namespaceNamed(namespace: string): Promise<string> {
  await env.connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs('1 day') });
  await expect.poll(() => env.connection.workflowService.describeNamespace({ namespace }), { timeout: 30_000 }).toBeTruthy();
  return namespace;
}

const ours = Object.values(SEARCH_ATTRIBUTES);
const namesIn = async (namespace: string) =>
  Object.keys((await env.connection.operatorService.listSearchAttributes({ namespace })).customAttributes ?? {});

describe('search attributes', () => {
  it('that are missing are registered, once for all workers that start', async () => {
    const namespace = await namespaceNamed('new');
    await Promise.all([1, 2, 3].map(() => registerSearchAttributes(env.connection, namespace, ours)));
    expect(await namesIn(namespace)).toEqual(expect.arrayContaining(ours.map(({ name }) => name)));
    await registerSearchAttributes(env.connection, namespace, ours);
  });

  it('that may not be added name the command that adds them', async () => {
    const namespace = await namespaceNamed('full');
    // A namespace in SQL has three columns for whole numbers.
    const ints = ['A', 'B', 'C'].map((name) => defineSearchAttributeKey(name, SearchAttributeType.INT));
    await registerSearchAttributes(env.connection, namespace, ints);
    const refused = registerSearchAttributes(env.connection, namespace, ours);
    await expect(refused).rejects.toThrow(SearchAttributesMissing);
    await expect(refused).rejects.toThrow(
      /cannot have more than 3 .*Run, as somebody who may: temporal operator search-attribute create --namespace full .*--name StillroomStep --type Int/,
    );
  });

  it('of another type name the command that removes them', async () => {
    const namespace = await namespaceNamed('other');
    await registerSearchAttributes(env.connection, namespace, [
      defineSearchAttributeKey('StillroomStep', SearchAttributeType.KEYWORD),
      SEARCH_ATTRIBUTES.phase,
    ]);
    await expect(registerSearchAttributes(env.connection, namespace, ours)).rejects.toThrow(
      /StillroomStep must be Int\. Run: temporal operator search-attribute remove --namespace other --name StillroomStep --yes$/,
    );
  });
});

describe('a worker process', () => {
  const SERVICE = { TINKER_BASE_URL: 'http://127.0.0.1:9', TINKER_API_KEY: 'tml-nobody' };
  const worker = (args: readonly string[], variables: Record<string, string>) =>
    execa(process.execPath, ['worker.ts', ...args], {
      cwd: PROJECT_ROOT,
      env: { TEMPORAL_CONFIG_FILE: join(PROJECT_ROOT, 'no-profiles.toml'), TEMPORAL_ADDRESS: address, ...SERVICE, ...variables },
      reject: false,
      timeout: 50_000,
    });

  it('that may not register what a run needs ends with 2 and the command', async () => {
    const { exitCode, stderr } = await worker(['--role', 'control'], { TEMPORAL_NAMESPACE: 'full' });
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(/Run, as somebody who may: temporal operator/) });
  });

  it('without its namespace ends with 2 and the command', async () => {
    const { exitCode, stderr } = await worker(['--role', 'rollouts'], { TEMPORAL_NAMESPACE: 'nowhere' });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringMatching(/no namespace nowhere at \S+\. Run: temporal operator namespace create --namespace nowhere/),
    });
  });

  it('without a server ends with 1 and the address', async () => {
    const [port] = await freePorts(1);
    const { exitCode, stderr } = await worker([], { TEMPORAL_ADDRESS: `127.0.0.1:${port}` });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringMatching(new RegExp(`^no Temporal server answers at 127.0.0.1:${port} \\(Connection refused\\)`)),
    });
  });

  it.each(['TINKER_BASE_URL', 'TINKER_API_KEY'])('without %s ends with 2 and says so', async (name) => {
    const { exitCode, stderr } = await worker(['--role', 'rollouts'], { [name]: '', TINKER_CREDENTIAL_CMD: '', HOME: '/nonexistent' });
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(`no ${name}: set it`) });
  });

  it('whose metrics port is taken ends with 2', async () => {
    const { exitCode, stderr } = await worker(['--metrics-port', address.split(':')[1] ?? ''], {});
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(/^metrics cannot be served on 127\.0\.0\.1:\d+ /) });
  });
});
