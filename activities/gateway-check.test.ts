import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import type { Check } from '../core/run/results.ts';
import { startGateway } from '../services/gateway/index.ts';
import { createSandboxActivities } from './preflight.ts';
import { Project } from './testing/project.ts';

/** The sandbox checks of a worker with this public URL; its harbor says that it was asked. */
async function checks(publicUrl?: string): Promise<readonly Check[]> {
  await using project = await Project.make();
  await project.task('a', {});
  const { ref } = await project.resolve({}, { runId: 'run-1', executionId: 'e1' });
  const { checkSandbox } = createSandboxActivities({
    records: project.records,
    harbor: async () => {
      throw new Error('harbor was asked');
    },
    trialsDir: async () => project.root,
    tasks: project.tasks,
    gateway: publicUrl === undefined ? {} : { publicUrl },
  });
  return (await new MockActivityEnvironment().run(checkSandbox, { run: ref })) as readonly Check[];
}
const dryRun = expect.objectContaining({ name: 'dry-run trial', detail: 'harbor was asked' });

it('a public URL that leads to a gateway passes, and the dry-run trial is next', async () => {
  await using gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  expect(await checks(gateway.url)).toEqual([expect.objectContaining({ name: 'gateway', ok: true }), dryRun]);
});

it('one where nobody listens fails with its setting, before any sandbox is started', async () => {
  const gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  await gateway.close();
  const [check, ...others] = await checks(gateway.url);
  expect(others).toEqual([]);
  expect(check).toMatchObject({ name: 'gateway', ok: false });
  expect(check?.detail).toMatch(/gateway\.publicUrl, STILLROOM_GATEWAY_URL or --gateway-url\): GET .*ECONNREFUSED/);
});

it('without a public URL nothing is asked', async () => expect(await checks()).toEqual([dryRun]));
