import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CallLog } from '../call-log.ts';
import type { Operation } from '../run-journal.ts';
import type { TrainingRun } from '../training-run.ts';
import { TrainingRuns } from '../training-runs.ts';
import { CountingBackend } from './counting-backend.ts';

/** For tests: models over a counting engine in a folder of their own. */
export class RunsFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'runs-'));
  backend = new CountingBackend();
  /** ISO time. */
  now = '2026-01-01T00:00:00Z';
  readonly #callLog: Pick<CallLog, 'add'> | undefined;
  readonly #onFatal: (reason: unknown) => void;
  runs: TrainingRuns;

  constructor(callLog?: Pick<CallLog, 'add'>, onFatal: (reason: unknown) => void = thrown) {
    this.#callLog = callLog;
    this.#onFatal = onFatal;
    this.runs = this.#open();
  }

  /** As after a kill: a new process, a new engine, the same folder. */
  restart(): void {
    this.backend = new CountingBackend();
    this.runs = this.#open();
  }

  begin(): TrainingRun {
    const lora = { rank: 1, seed: 1, trainAttn: true, trainMlp: true };
    return this.runs.begin({ sessionId: 's', modelSeqId: 0, baseModel: 'base', lora, userMetadata: null }, { op: 'create' });
  }

  remove(): void {
    this.runs.close();
    rmSync(this.folder, { recursive: true });
  }

  #open(): TrainingRuns {
    return new TrainingRuns(this.folder, {
      backend: this.backend,
      addSampler: () => {},
      now: () => new Date(this.now),
      callLog: this.#callLog,
      onFatal: this.#onFatal,
    });
  }
}

function thrown(reason: unknown): never {
  throw reason;
}

export const gradient: Operation = { op: 'forward_backward', forwardOnly: false };
export const step: Operation = {
  op: 'optim_step',
  adam: { learningRate: 0.5, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 0 },
};
export const save = (name: string): Operation => ({ op: 'save_weights', name, overwrite: false, ttlSeconds: null, userMetadata: null });
export const saveSampler = (name: string): Operation => ({
  op: 'save_weights_for_sampler',
  name,
  samplerId: null,
  ttlSeconds: null,
  userMetadata: null,
});

/** Waits for a call's end and returns it. */
export async function done(run: TrainingRun, seq: number) {
  await run.wait(seq, 2000);
  return run.future(seq);
}

/** The one number that a checkpoint of the counting engine holds. */
export const valueIn = (run: TrainingRun, name: string): number | undefined =>
  new Float64Array(run.checkpoints.read('weights', name).weights.slice().buffer)[0];
