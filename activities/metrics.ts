import type { BlobRef } from '../core/ids.ts';
import type { MeterTokens } from '../core/measures/meters.ts';
import { spendOf } from '../core/measures/spend.ts';
import { closeTrainingStep, type FinishedStep } from '../core/measures/training-step.ts';
import type { KeptTrials } from '../core/run/kept-trials.ts';
import type { GuardState, MoneySoFar, Spend, StepResult, TrainResult } from '../core/run/results.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { readTrials } from './kept-trials.ts';
import type { RunFolder } from './run-folder.ts';
import type { RunRecords } from './run-records.ts';
import { writeSamples } from './samples.ts';

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

export type MetricsDeps = { readonly records: RunRecords; readonly blobs: BlobStore; readonly folderOf: (runDir: string) => RunFolder };
export type MetricsActivities = ReturnType<typeof createMetricsActivities>;

export function createMetricsActivities({ records, blobs, folderOf }: MetricsDeps) {
  return {
    /** Makes the step's row and the guards' decisions, and appends the row to `metrics.jsonl`. A step that is closed twice has two lines; the last one counts. */
    async closeStep(order: StepOrder): Promise<StepResult> {
      const record = await records.load(order.run);
      const folder = folderOf(record.runDir);
      const trials = await readTrials(order.trials, blobs);
      const result = closeTrainingStep({ ...order, trials, wallMs: Date.now() - order.startedAtMs, config: record.config });
      await writeSamples(order.step, trials, record, blobs, folder);
      await folder.append('metrics.jsonl', JSON.stringify(result.row));
      return result;
    },

    /** What tokens by meter cost so far. */
    async tallySpend({ run, meters }: { run: BlobRef; meters: MeterTokens }): Promise<Spend> {
      const { config } = await records.load(run);
      return spendOf(config.pricing, meters);
    },
  };
}
