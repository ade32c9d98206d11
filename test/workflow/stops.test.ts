import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import pLimit from 'p-limit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { distill } from '../../workflows/distill.ts';
import { pauseUpdate, type RunStatus, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { activitiesByRun } from './by-run.ts';
import { localServer, withWorkers } from './environment.ts';
import type { AllActivities } from './fake-activities.ts';
import { HeldWorld } from './held-world.ts';
import { ask, INPUT, serverOfFile, waitsFor } from './runs.ts';
import { imported, STOP_ROWS } from './stop-rows.ts';

const HOW = ['stop', 'cancel'] as const;
type How = (typeof HOW)[number];
const CASES = HOW.flatMap((how) => STOP_ROWS.map((row) => ({ how, ...row, id: `run-${randomUUID()}` })));
type Case = (typeof CASES)[number];

const RUNS_AT_ONCE = 8;
const env = serverOfFile(localServer);
const worlds = new Map<string, HeldWorld>();
const ends = new Map<string, Promise<End>>();
let all: Promise<unknown>;
beforeAll(() => {
  const limit = pLimit(RUNS_AT_ONCE);
  const activities = activitiesByRun((id) => worlds.get(id)?.activities);
  all = withWorkers(env(), activities, async (taskQueue) => {
    for (const one of CASES)
      ends.set(
        one.id,
        limit(() => driven(one, taskQueue)),
      );
    await Promise.allSettled(ends.values());
  });
});
afterAll(() => all, 60_000);

/** What is left of a run when it has ended. */
type End = {
  /** Its outcome as it was returned, or the type of its failure. */
  readonly returned: string;
  readonly status: RunStatus;
  readonly children: Record<string, string>;
  readonly world: HeldWorld;
};

async function driven({ id, how, hold, waits, run: over, plan, over: activities, pauses }: Case, taskQueue: string): Promise<End> {
  const world = new HeldWorld(hold ?? null, activities ?? {}, { ...imported, ...over }, plan ?? {});
  worlds.set(id, world);
  const { workflow } = env().client;
  await workflow.start('distill', { taskQueue, workflowId: id, args: [INPUT] });
  const handle = workflow.getHandle<typeof distill>(id);
  if (hold?.activity === 'promoteAdapter') {
    await waitsFor(handle, 'promotion');
    await handle.executeUpdate('decidePromotion', { args: [{ ...ask, approve: true }] });
  }
  if (waits) await waitsFor(handle, waits);
  else await world.reached;
  if (pauses) {
    await handle.executeUpdate(pauseUpdate, { args: [ask] });
    world.release();
    await waitsFor(handle, 'pause');
  }
  await ended(handle, how);
  world.release();
  const returned = await handle.result().then(
    ({ outcome }) => outcome,
    (error) => error.cause?.name ?? error.message,
  );
  await expect.poll(() => world.inFlight, { timeout: 10_000 }).toEqual([]);
  return { returned, status: await handle.query(statusQuery), children: await childrenOf(handle), world };
}

async function ended(handle: WorkflowHandle<typeof distill>, how: How): Promise<void> {
  if (how === 'cancel') await handle.cancel();
  else
    await handle.executeUpdate(stopUpdate, { args: [ask] }).catch((error) => expect(error.cause.message).toBe('stop: the run has ended'));
}

/** The children of a run, and how each stands. */
async function childrenOf(handle: WorkflowHandle): Promise<Record<string, string>> {
  const { events } = await handle.fetchHistory();
  const ids = (events ?? []).flatMap((event) => event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId ?? []);
  const standing = await Promise.all(ids.map(async (id) => (await env().client.workflow.getHandle(id).describe()).status.name));
  return Object.fromEntries(ids.map((id, index) => [id, standing[index] ?? '']));
}

async function endOf(id: string): Promise<End> {
  await expect.poll(() => ends.has(id), { timeout: 60_000 }).toBe(true);
  return ends.get(id) as Promise<End>;
}

describe.each(HOW)('%s', (how) => {
  it.each(CASES.filter((one) => one.how === how))('$where', { timeout: 240_000 }, async ({ id, steps, states, books, outcome, how }) => {
    const { returned, status, children, world } = await endOf(id);
    expect([returned, status.outcome]).toEqual(
      outcome?.[how] ? [outcome[how], outcome[how]] : [how === 'stop' ? 'stopped' : 'CancelledFailure', 'stopped'],
    );

    // What was trained is saved, once, and is in the books; the service need not hold the training any longer.
    expect(world.told('saveState', ({ name }) => name)).toEqual(states);
    const saved = states.map((name) => `tinker://s/weights/${name}`);
    expect(status.weights?.statePath ?? null).toBe(saved.at(-1) ?? null);
    expect(world.told('closeTraining', () => 'closed')).toEqual(world.told('openTraining', () => 'closed'));

    // The last state was written after everything else, with all rows and what was saved.
    expect(world.calls.at(-1)?.activity).toBe('mirrorRun');
    const [mirrored] = world.calls.flatMap((call) =>
      call.activity === 'mirrorRun' ? [call.order as Parameters<AllActivities['mirrorRun']>[0]] : [],
    );
    expect(mirrored?.status).toMatchObject({
      phase: 'ended',
      step: steps,
      waitingFor: null,
      ...(steps > 0 ? { lastRow: { step: steps } } : {}),
    });
    expect(mirrored?.checkpoints).toMatchObject({ rows: expect.arrayContaining(saved.map((path) => expect.objectContaining({ path }))) });

    expect(world.told('readBooks', ({ books }) => books.map(({ of }) => of.replace('0123abcd-', '')).join())).toEqual(books ?? []);
    expect(Object.values(children)).not.toContain('RUNNING');
    expect(status).toMatchObject({ phase: 'ended', waitingFor: null, child: null });
  });
});
