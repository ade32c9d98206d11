import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowFailedError } from '@temporalio/client';
import { connectTo, type Link } from '../../client/connection.ts';
import { RunClient } from '../../client/run-client.ts';
import { startRun } from '../../client/starting.ts';
import { BlobStore } from '../../services/blobs/blob-store.ts';
import { openObjectStore } from '../../services/blobs/open.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import type { RuleInput } from '../../trainer/faults/plan.ts';
import type { LoggedCall } from '../../trainer/service/call-log.ts';
import type { RunResult } from '../../workflows/messages.ts';
import { CallLogFile } from '../support/call-log-file.ts';
import { historyOf, type RunHistory } from './histories.ts';
import { Killer } from './killing.ts';
import { type KillRecord, killInTurn } from './kills.ts';
import { type Leftovers, Sightings } from './leftovers.ts';
import { Moments } from './moments.ts';
import { chaosInput, stepsFor } from './quickstart.ts';
import { type Books, booksOf } from './run-books.ts';
import type { PlannedKill } from './schedule.ts';
import { UpProcess } from './up-process.ts';

export type ChaosOptions = {
  readonly schedule: readonly PlannedKill[];
  readonly runId: string;
  readonly stateDir: string;
  /** Told what happens, as it happens. */
  readonly tell: (line: string) => void;
};

/** Everything that the checks look at. */
export type ChaosRun = {
  readonly runId: string;
  readonly result: RunResult | null;
  /** Why there is no result. */
  readonly failure: string | null;
  readonly steps: number;
  readonly kills: readonly KillRecord[];
  readonly planned: number;
  readonly calls: readonly LoggedCall[];
  readonly history: RunHistory;
  readonly books: Books;
  /** Lines of `metrics.jsonl`. */
  readonly rows: readonly string[];
  readonly leftovers: Leftovers;
  readonly exitCode: number | null;
  readonly wallMs: number;
};

/** How long the answer of an optimizer step is held back, so that it can be told that one is pending. */
export const OPTIM_PENDING_MS = 2_500;
const FAULTS: readonly RuleInput[] = [
  { on: 'retrieve_future', for: 'OptimStep', times: 'always', fault: { kind: 'pending', ms: OPTIM_PENDING_MS, hold_ms: 250 } },
];

/** Runs the lengthened quickstart under `stillroom up`, kills what the schedule says, and collects what is left of it. */
export async function chaosRun({ schedule, runId, stateDir, tell }: ChaosOptions): Promise<ChaosRun> {
  const startedAtMs = Date.now();
  const settings = readAppSettings();
  const files = { callLogFile: join(stateDir, 'calls.jsonl'), faultsFile: join(stateDir, 'faults.json') };
  writeFileSync(files.faultsFile, JSON.stringify(FAULTS));
  const steps = stepsFor(schedule.length);
  const up = await UpProcess.start({ stateDir, workers: 2, trainer: files });
  const sightings = new Sightings(up, stateDir);
  const killer = new Killer(up);
  let exitCode: number | null = null;
  try {
    const link = await connectTo(up.address);
    await startRun(link, chaosInput(steps), { runId, taskQueue: settings.taskQueues.control, summary: `chaos: ${schedule.length} kills` });
    tell(`${runId}: ${steps} steps, ${schedule.length} kills; ${stateDir}`);
    const ending = endOf(link, runId);
    const calls = new CallLogFile(files.callLogFile);
    const moments = new Moments(link, runId, calls, ending.over);
    const kills = await killInTurn(schedule, { moments, killer, sightings, tell });
    await killer.allContinued();
    const ended = await ending.end;
    tell(`the run ended: ${ended.result?.outcome ?? ended.failure}`);
    const history = await historyOf(link.client, runId);
    const { usage } = await new RunClient(link, runId).status();
    const books = await booksOf(history, usage, new BlobStore(await openObjectStore(settings)));
    sightings.note();
    await link.close();
    exitCode = await up.interrupt();
    await sleep(SETTLE_MS);
    const collected = { calls: calls.calls(), history, books, rows: rowsOf(settings.runRoot, runId), leftovers: sightings.left() };
    const wallMs = Date.now() - startedAtMs;
    return { runId, ...ended, steps, kills, planned: schedule.length, ...collected, exitCode, wallMs };
  } finally {
    killer.dispose();
    await up.interrupt();
  }
}

/** A process that was told to end may take a moment to be gone. */
const SETTLE_MS = 500;

type Ended = Pick<ChaosRun, 'result' | 'failure'>;

function endOf(link: Link, runId: string): { readonly end: Promise<Ended>; readonly over: AbortSignal } {
  const over = new AbortController();
  const end = resultOf(link, runId).finally(() => over.abort());
  return { end, over: over.signal };
}

/** The server is down now and then: only its word that the run has ended counts. */
async function resultOf(link: Link, runId: string): Promise<Ended> {
  for (;;) {
    try {
      return { result: (await link.client.workflow.getHandle(runId).result()) as RunResult, failure: null };
    } catch (error) {
      if (error instanceof WorkflowFailedError) return { result: null, failure: `${error.message}: ${error.cause?.message ?? ''}` };
      await sleep(1_000);
    }
  }
}

function rowsOf(runRoot: string, runId: string): string[] {
  const file = join(runRoot, runId, 'metrics.jsonl');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}
