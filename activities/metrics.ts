import type { BlobRef } from '../core/ids.ts';
import type { MeterTokens } from '../core/measures/meters.ts';
import { spendOf } from '../core/measures/spend.ts';
import { closeTrainingStep, type FinishedStep } from '../core/measures/training-step.ts';
import type { KeptTrials } from '../core/run/kept-trials.ts';
import type { GuardState, MoneySoFar, Spend, StepResult, TrainResult } from '../core/run/results.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { readTrials } from './kept-trials.ts';
import type { RendererOf } from './renderers.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import type { RunRecords } from './run-records.ts';
import { writeSamples } from './samples.ts';
import { sweepStepsBefore } from './sweep-calls.ts';

export type StepOrder = {
  readonly run: BlobRef;
  readonly step: number;
  readonly tasks: number;
  readonly sampler: FinishedStep['sampler'];
  readonly guard: GuardState;
  readonly money: MoneySoFar;
  readonly trials: KeptTrials;
  readonly train: TrainResult;
  readonly startedAtMs: number;
};

export type MetricsDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly folderOf: (run: RunPlace) => RunFiles;
  readonly rendererOf: RendererOf;
};
export type MetricsActivities = ReturnType<typeof createMetricsActivities>;

export function createMetricsActivities({ records, blobs, objects, folderOf, rendererOf }: MetricsDeps) {
  return {
    /** Makes the step's row and the guards' decisions, once: closing the step again for the same order returns what was made first. */
    async closeStep(order: StepOrder): Promise<StepResult> {
      const record = await records.load(order.run);
      const files = folderOf(record);
      const closed = await files.keepRow('rows', order.step, order, async () => {
        const trials = await readTrials(order.trials, blobs);
        await writeSamples(order.step, trials, record, { blobs, files, rendererOf });
        return closeTrainingStep({ ...order, trials, wallMs: Date.now() - order.startedAtMs, config: record.config });
      });
      await sweepStepsBefore(objects, record.runId, order.step);
      return closed;
    },

    /** What tokens by meter cost so far. */
    async tallySpend({ run, meters }: { run: BlobRef; meters: MeterTokens }): Promise<Spend> {
      const { config } = await records.load(run);
      return spendOf(config.pricing, meters);
    },
  };
}
