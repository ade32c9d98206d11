import { expect, it } from 'vitest';
import { declineCostUpdate, statusQuery } from '../../workflows/messages.ts';
import { timeSkippingServer } from './environment.ts';
import { ask, resolvedAs, serverOfFile, startIn } from './runs.ts';

const env = serverOfFile(timeSkippingServer);
const run = startIn(env);

/** The time-skipping server leaves a query that meets a workflow task without an answer now and then: ask again. */
const QUERY_PATIENCE_MS = 3_000;

it('waits for a week without losing anything, and ends declined', async () => {
  await run({ resolveRun: resolvedAs({ yes: false }) }, async (handle) => {
    const status = () =>
      env()
        .connection.withDeadline(Date.now() + QUERY_PATIENCE_MS, () => handle.query(statusQuery))
        .catch(() => null);
    await expect.poll(async () => (await status())?.waitingFor?.kind, { timeout: 40_000 }).toBe('cost');
    await env().sleep('7 days');
    await handle.executeUpdate(declineCostUpdate, { args: [ask] });
    expect(await handle.result()).toMatchObject({ outcome: 'declined', evaluations: [] });
  });
});
