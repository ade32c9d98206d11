import { readdirSync, readFileSync } from 'node:fs';
import { DefaultLogger, type ReplayResult, Runtime, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { beforeAll, describe, expect, it } from 'vitest';
import { PAYLOAD_CONVERTER } from '../services/temporal/workflow-bundle.ts';
import * as workflows from '../workflows/index.ts';
import { type Fixture, FOLDER, readHistory, readIndex } from './histories/fixtures.ts';
import { workflowBundle } from './support/bundle.ts';

/** The code of today must come to the decisions that are in histories of before; see docs/changing-workflows.md. */

Runtime.install({ logger: new DefaultLogger('ERROR') });
const FIXTURES = readIndex();
let bundle: { codePath: string };
let errors: readonly ReplayResult['error'][];
beforeAll(async () => {
  bundle = await workflowBundle();
  errors = await replayed(FIXTURES);
}, 180_000);

/** Replays histories one after the other in one worker: where code disagrees with one, there is an error in its place. */
async function replayed(
  fixtures: readonly Fixture[],
  workflowBundle: { codePath: string } | { code: string } = bundle,
): Promise<ReplayResult['error'][]> {
  const options = { workflowBundle, dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER } };
  const histories = fixtures.map(({ name, workflowId }) => ({ workflowId, history: readHistory(name) }));
  const found = new Map<string, ReplayResult['error']>();
  for await (const { runId, error } of Worker.runReplayHistories(options, histories)) found.set(runId, error);
  return histories.map(({ history }) => {
    const runId = runIdOf(history);
    if (!found.has(runId)) throw new Error(`${runId} was not replayed`);
    return found.get(runId);
  });
}

type Json = {
  readonly events: readonly { readonly workflowExecutionStartedEventAttributes: { readonly originalExecutionRunId: string } }[];
};
const runIdOf = (history: unknown) => (history as Json).events[0]?.workflowExecutionStartedEventAttributes.originalExecutionRunId ?? '';

describe('the histories', () => {
  it.each(FIXTURES.map((fixture, at) => ({ ...fixture, at })))('$name: $shows', ({ at }) => {
    expect(errors[at]).toBeUndefined();
  });

  it('are those of the index', () => {
    const files = readdirSync(FOLDER).filter((file) => file !== 'index.json');
    expect(files.sort()).toEqual(FIXTURES.map(({ name }) => `${name}.json.gz`).sort());
  });

  it('are of every type of workflow', () => {
    expect([...new Set(FIXTURES.map(({ type }) => type))].sort()).toEqual(Object.keys(workflows).sort());
  });
});

describe('changed code that disagrees with a history is found:', () => {
  it.each([
    ['an activity of another name', 'accepted', '.estimateRun(', '.guessCost('],
    ['a child of another id', 'promoted', '}.eval-', '}.measure-'],
    ['an open run that did something else before it waited', 'waiting-for-approval', '.writeHandoff(', '.mirrorRun('],
  ])('%s', async (_, name, before, after) => {
    const code = readFileSync(bundle.codePath, 'utf8');
    expect(code.includes(before)).toBe(true);
    const [error] = await replayed(
      FIXTURES.filter((fixture) => fixture.name === name),
      { code: code.replaceAll(before, after) },
    );
    expect(error).toBeInstanceOf(DeterminismViolationError);
  });
});
