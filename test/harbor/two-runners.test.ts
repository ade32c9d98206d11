import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HarborRunner, sweepSandboxes } from '../../services/harbor/index.ts';
import { processesWith, Setting, until } from './setting.ts';

const TRIALS = 4;

let setting: Setting;
let ours: HarborRunner;
let theirs: HarborRunner;
beforeAll(async () => {
  setting = await Setting.make();
  // As two workers have them: one place for sandboxes on the machine, a HOME each.
  const start = (home: string) => HarborRunner.start({ ...setting.options, home: join(setting.dir, home) });
  [ours, theirs] = await Promise.all([start('ours'), start('theirs')]);
});
afterAll(async () => {
  await Promise.all([ours?.close(), theirs?.close()]);
  await setting?.[Symbol.asyncDispose]();
});

/** Trials that are all in their sandbox, and stay there until they are let go. */
function waitingTrials(runner: HarborRunner) {
  let inside = 0;
  const onEvent = (event: string) => {
    if (event === 'agent-start') inside += 1;
  };
  const script = ['for i in $(seq 600); do [ -e go ] && break; sleep 0.1; [ $i -gt 40 ] && touch go; done; cp sun map', 'cat map'];
  const ended = Promise.allSettled(Array.from({ length: TRIALS }, () => setting.run(runner, script, {}, { onEvent })));
  return { ended, allInside: () => until('all trials have begun', async () => inside === TRIALS, 30_000) };
}

test("two runners of one machine work side by side; one is killed, and the other's trials pass", async () => {
  const [living, dying] = [waitingTrials(ours), waitingTrials(theirs)];
  await Promise.all([living.allInside(), dying.allInside()]);
  expect(await setting.sandboxes()).toHaveLength(2 * TRIALS);

  const pid = await theirs.pid();
  process.kill(pid, 'SIGKILL');
  for (const { status, reason } of (await dying.ended) as PromiseRejectedResult[])
    expect([status, reason.name]).toEqual(['rejected', 'RunnerDied']);
  // The dead one's sandboxes go, whoever sweeps; the living one's stay.
  await sweepSandboxes(setting.options);
  await until('only the living are left', async () => (await setting.sandboxes()).length <= TRIALS);

  for (const trial of await living.ended) {
    expect(trial).toMatchObject({ status: 'fulfilled', value: { reward: 1, executed: true, exceptionType: null } });
    expect((trial as PromiseFulfilledResult<{ observations: string[] }>).value.observations[1]).toBe('[0] 7');
  }
  // The one that died is there again for the next attempt.
  expect(await setting.run(theirs, ['cp sun map'])).toMatchObject({ reward: 1 });
  expect(await theirs.pid()).not.toBe(pid);
  expect(await setting.sandboxes()).toEqual([]);
  expect(await processesWith(`${setting.dir}/sandboxes`)).toEqual([]);
});
