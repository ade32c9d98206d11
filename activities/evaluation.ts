import { ApplicationFailure } from '@temporalio/common';
import { baselineReport } from '../core/gate/baseline-report.ts';
import { type Evidence, gateEvidence, signFlipEvidence } from '../core/gate/evidence.ts';
import { decideGate } from '../core/gate/gate.ts';
import type { BlobRef } from '../core/ids.ts';
import { NullMeasurementError, requireMeasured, solveRate } from '../core/measures/rates.ts';
import { addPaid } from '../core/measures/usage.ts';
import { usualMostUsd } from '../core/money/reservations.ts';
import type { KeptTrials } from '../core/run/kept-trials.ts';
import type { EvalLabel, EvalResult, GateVerdict, TaskTally } from '../core/run/results.ts';
import type { ModelRef, TrialSummary } from '../core/run/trial.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { readTrials } from './kept-trials.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import type { RunRecords } from './run-records.ts';
import { sweepBatch } from './sweep-calls.ts';

export type EvaluationOrder = {
  readonly run: BlobRef;
  readonly label: EvalLabel;
  readonly model: ModelRef;
  readonly trials: KeptTrials;
  readonly startedAtMs: number;
};
export type GateOrder = { readonly run: BlobRef; readonly teacher: EvalResult; readonly before: EvalResult; readonly after: EvalResult };

export type EvaluationDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly folderOf: (run: RunPlace) => RunFiles;
  /** The project's record of gates by protocol; returns how many this protocol had before this run's. */
  readonly countGate: (protocolHash: string, runId: string) => Promise<number>;
};
export type EvaluationActivities = ReturnType<typeof createEvaluationActivities>;

/** Confidence of intervals that inform; only `gate.confidence` decides. */
const INFORMATIVE_CONFIDENCE = 0.95;

/** Evaluations that are baselines. */
const BASELINES: Readonly<Partial<Record<EvalLabel, 'teacher' | 'student'>>> = { teacher: 'teacher', 'student-before': 'student' };

export function createEvaluationActivities({ records, blobs, objects, folderOf, countGate }: EvaluationDeps) {
  return {
    /**
     * Counts an evaluation's trials, overall and per task, and writes them to the run's folder; baselines also as the report that another
     * run can import. Fails when none was executed.
     */
    async closeEvaluation({ run, label, model, trials: kept, startedAtMs }: EvaluationOrder): Promise<EvalResult> {
      const trials = (await readTrials(kept, blobs)).map(({ trial }) => trial);
      const record = await records.load(run);
      const { config, holdout, runId } = record;
      const executed = trials.filter((trial) => trial.executed);
      const counted = { trials: trials.length, executedTrials: executed.length };
      try {
        requireMeasured(counted);
      } catch (error) {
        if (!(error instanceof NullMeasurementError)) throw error;
        const reason = trials.find((trial) => trial.exceptionType)?.exceptionMessage ?? 'no trial says why';
        throw ApplicationFailure.nonRetryable(`${label}: ${error.message}. First failure: ${reason}`, 'NothingExecuted');
      }
      const passed = executed.filter((trial) => trial.passed).length;
      const result: EvalResult = {
        label,
        source: 'measured',
        model,
        trials: trials.length,
        executed: executed.length,
        passed,
        infraFailed: trials.length - executed.length,
        solveRate: solveRate(passed, executed.length),
        perTask: tallies(executed),
        ...addPaid(...trials),
        trialUsd: usualMostUsd(trials.map(({ usd }) => usd)),
        wallMs: Date.now() - startedAtMs,
      };
      const files = folderOf(record);
      await files.writeJson(`eval-${label}.json`, { ...result, outcomes: trials });
      const which = BASELINES[label];
      if (which) {
        const measured = { which, evaluation: result, taskIds: holdout.map(({ id }) => id), attempts: config.gate.k, trials };
        await files.writeJson(`baseline-${which}.json`, baselineReport(measured));
      }
      await sweepBatch(
        objects,
        runId,
        trials.map(({ trialId }) => trialId),
      );
      return result;
    },

    /** How far the teacher is ahead of the student, task by task; null when no task was measured on both sides. */
    async compareTeacher({ teacher, before }: { run: BlobRef; teacher: EvalResult; before: EvalResult }): Promise<Evidence | null> {
      const student = ratesOf(before);
      const differences = [...ratesOf(teacher)].flatMap(([taskId, rate]) => {
        const other = student.get(taskId);
        return other === undefined ? [] : [rate - other];
      });
      return signFlipEvidence(differences, INFORMATIVE_CONFIDENCE);
    },

    /** Whether the trained student earned promotion, with the evidence a person should see beside the verdict. */
    async decideGate({ run, teacher, before, after }: GateOrder): Promise<GateVerdict> {
      const record = await records.load(run);
      const { config, protocolHash, runId } = record;
      const evidence = evidenceOf(teacher, before, after, config.gate);
      const { accepted, reasons, threshold } = decideGate({
        teacher: teacher.solveRate,
        before: before.solveRate,
        after: after.solveRate,
        gate: config.gate,
        evidence: evidence.afterMinusBefore,
      });
      const verdict: GateVerdict = {
        accepted,
        reasons,
        threshold,
        teacher: teacher.solveRate,
        before: before.solveRate,
        after: after.solveRate,
        improvement: evidence.afterMinusBefore,
        overThreshold: evidence.afterMinusTeacherShare,
        protocolHash,
        earlierGates: await countGate(protocolHash, runId),
      };
      await folderOf(record).writeJson('gate.json', verdict);
      return verdict;
    },
  };
}

function evidenceOf(
  teacher: EvalResult,
  before: EvalResult,
  after: EvalResult,
  gate: { confidence: number | null; min_teacher_fraction: number },
) {
  const [teachers, befores, afters] = [ratesOf(teacher), ratesOf(before), ratesOf(after)];
  const taskIds = new Set([...teachers.keys(), ...befores.keys(), ...afters.keys()]);
  const rows = [...taskIds].map((taskId) => ({
    taskId,
    teacher: teachers.get(taskId) ?? null,
    before: befores.get(taskId) ?? null,
    after: afters.get(taskId) ?? null,
  }));
  return gateEvidence(rows, { confidence: gate.confidence ?? INFORMATIVE_CONFIDENCE, teacherFraction: gate.min_teacher_fraction });
}

/** Solve rate by task, for tasks with an executed trial. */
function ratesOf({ perTask }: EvalResult): Map<string, number> {
  return new Map(perTask.flatMap(({ taskId, executed, passed }) => (executed > 0 ? [[taskId, passed / executed] as const] : [])));
}

function tallies(executed: readonly TrialSummary[]): TaskTally[] {
  const byTask = Map.groupBy(executed, (trial) => trial.taskId);
  return [...byTask].map(([taskId, trials]) => ({
    taskId,
    executed: trials.length,
    passed: trials.filter((trial) => trial.passed).length,
  }));
}
