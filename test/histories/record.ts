/**
 * `npm run histories`: runs each scenario on a real dev server with the real workflows, and keeps the histories for test/replay.test.ts.
 * `--keep ID` keeps those that are there beside the new ones, as `<name>@ID`; `--drop ID` removes these again and records nothing.
 * When that is right, and when not: docs/changing-workflows.md.
 */
import { copyFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import pLimit from 'p-limit';
import type { distill } from '../../workflows/distill.ts';
import { activitiesByRun } from '../workflow/by-run.ts';
import { localServer, withWorkers } from '../workflow/environment.ts';
import { type AllActivities, fakeActivities } from '../workflow/fake-activities.ts';
import { executionsOf } from './executions.ts';
import { type Fixture, fileOf, keptFor, type Recorded, readIndex, writeFixtures } from './fixtures.ts';
import { resolved, SCENARIOS, type Scenario } from './scenarios.ts';

/** Runs at a time: more of them only wait for the server. */
const SIDE_BY_SIDE = 6;

const INPUT = { agent: 'turn', config: 'run.toml', taskIds: ['a', 'b', 'c'], holdoutTaskIds: ['x', 'y'] };

/** Few enough that the runs which are to grow long do so within a few steps. */
const FEW_EVENTS = ['--dynamic-config-value', 'limit.historyCount.suggestContinueAsNew=70'];

function activitiesOf(scenarios: readonly (readonly [name: string, scenario: Scenario])[]): AllActivities {
  const byRun = new Map(scenarios.map(([name, { activities }]) => [name, fakeActivities({ resolveRun: resolved(), ...activities })]));
  return activitiesByRun((run) => byRun.get(run));
}

async function record(env: TestWorkflowEnvironment, taskQueue: string, name: string, scenario: Scenario): Promise<Recorded[]> {
  const { workflow } = env.client;
  const { firstExecutionRunId } = await workflow.start(scenario.workflow ?? 'distill', {
    taskQueue,
    workflowId: name,
    args: [scenario.input ?? INPUT],
  });
  await scenario.drive(workflow.getHandle<typeof distill>(name));
  const recorded: Recorded[] = [];
  for (const id of [name, ...(scenario.children ?? []).map((child) => `${name}.${child}`)])
    recorded.push(...(await fixturesOf(env, id, scenario)));
  await workflow
    .getHandle(name, undefined, { firstExecutionRunId })
    .terminate('recorded')
    .catch(() => {}); // most have ended
  console.log(`${name}: ${recorded.length} ${recorded.length === 1 ? 'history' : 'histories'}`);
  return recorded;
}

async function fixturesOf({ client }: TestWorkflowEnvironment, workflowId: string, { shows }: Scenario): Promise<Recorded[]> {
  const executions = await executionsOf(client, workflowId);
  return executions.map(({ type, history }, at) => {
    const part = executions.length === 1 ? '' : `-${at + 1}`;
    return {
      name: `${workflowId}${part}`,
      workflowId,
      type,
      shows: `${shows}${part && ` (execution ${at + 1} of ${executions.length})`}`,
      history,
    };
  });
}

/** Records the scenarios on two servers, one after the other: one as it comes, one on which histories are soon long. */
async function recordAll(): Promise<Recorded[]> {
  const recorded: Recorded[] = [];
  for (const long of [false, true]) {
    const scenarios = Object.entries(SCENARIOS).filter(([, scenario]) => (scenario.long ?? false) === long);
    const limit = pLimit(SIDE_BY_SIDE);
    const env = await localServer(...(long ? FEW_EVENTS : []));
    try {
      const histories = await withWorkers(env, activitiesOf(scenarios), (taskQueue) =>
        Promise.all(scenarios.map(([name, scenario]) => limit(() => record(env, taskQueue, name, scenario)))),
      );
      recorded.push(...histories.flat());
    } finally {
      await env.teardown();
    }
  }
  for (const [name, { long }] of Object.entries(SCENARIOS))
    if (long && !recorded.some((history) => history.name === `${name}-2`)) throw new Error(`${name} did not go on in a new execution`);
  return recorded;
}

/** The fixtures that stay under the name of a patch, those of `id` made from what is there now. */
function keeping(id: string | undefined): Fixture[] {
  const index = readIndex();
  const kept = index.filter(({ name }) => keptFor(name) !== null);
  if (id === undefined) return kept;
  if (!/^[\w.-]+$/.test(id)) throw new Error(`--keep ${JSON.stringify(id)}: the id of a patch has letters, digits, dots and dashes`);
  if (kept.some(({ name }) => keptFor(name) === id)) throw new Error(`histories for ${id} are kept already`);
  const current = index.filter(({ name }) => keptFor(name) === null);
  return [
    ...kept,
    ...current.map((fixture) => {
      const name = `${fixture.name}@${id}`;
      copyFileSync(fileOf(fixture.name), fileOf(name));
      return { ...fixture, name };
    }),
  ];
}

const { keep, drop } = parseArgs({ options: { keep: { type: 'string' }, drop: { type: 'string' } } }).values;
if (drop === undefined) {
  const recorded = await recordAll();
  const bytes = writeFixtures(recorded, keeping(keep));
  console.log(`${readIndex().length} histories, ${Math.round(bytes / 1000)} kB`);
} else {
  const dropped = readIndex().filter(({ name }) => keptFor(name) === drop);
  if (dropped.length === 0) throw new Error(`no histories are kept for ${drop}`);
  writeFixtures(
    [],
    readIndex().filter(({ name }) => keptFor(name) !== drop),
  );
  console.log(`removed ${dropped.length} histories`);
}
process.exit(0);
