import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { BranchCheckActivities } from '../activities/branch-check.ts';
import type { CheckpointActivities } from '../activities/checkpoints.ts';
import type { CutOffActivities } from '../activities/cut-off.ts';
import type { EvaluationActivities } from '../activities/evaluation.ts';
import type { InputActivities } from '../activities/inputs.ts';
import type { KeepTrainingActivities } from '../activities/keep-training.ts';
import type { KeptTrialsActivities } from '../activities/kept-trials.ts';
import type { MetricsActivities } from '../activities/metrics.ts';
import type { MirrorActivities } from '../activities/mirror.ts';
import type { PreflightActivities, SandboxActivities } from '../activities/preflight.ts';
import type { PromotionActivities } from '../activities/promotion.ts';
import type { RolloutActivities } from '../activities/rollouts.ts';
import type { TeacherActivities } from '../activities/teacher.ts';
import type { TrainingActivities } from '../activities/training.ts';
import type { WarmupActivities } from '../activities/warm-up.ts';
import type { WarmupTrainingActivities } from '../activities/warm-up-training.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import { attemptLimitMs } from '../core/run/trial-time.ts';
import { keepQueueOf } from '../core/training/keep-queue.ts';

/** Before the long queues of trials and scores of all runs: somebody waits for it. The lower number goes first; 3 is the usual one. */
const SOON = { priorityKey: 2 };

/** Work that is cancelled is waited for: whoever cancelled it knows what came of it, and nothing of a run runs on when it has ended. */
const TO_ITS_END = { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED } as const;

/** Short work on files and numbers: tried a few times, then the run fails with the last reason. */
const BRIEF = {
  ...TO_ITS_END,
  priority: SOON,
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '15s',
  retry: { initialInterval: '200ms', maximumInterval: '10s', maximumAttempts: 8 },
} as const;

/** Errors, by name, that come again however often the same work is tried. */
const FINAL = ['BadRequest', 'TokenError', 'TrialRefused', 'BadHarborInput'];

/** Work that waits on a service or dies with its worker: tried until it succeeds; only a failure that says so is final. */
const PATIENT = { initialInterval: '200ms', maximumInterval: '30s', nonRetryableErrorTypes: FINAL };

export const briefActivities = () =>
  proxyActivities<InputActivities & MetricsActivities & EvaluationActivities & PromotionActivities & MirrorActivities & WarmupActivities>(
    BRIEF,
  );

/** Reads what a run is given; tasks of repositories are fetched by it. */
export const resolving = () => proxyActivities<Pick<InputActivities, 'resolveRun'>>({ ...BRIEF, startToCloseTimeout: '1 hour' });

/** Tells in its answer what failed; tried again later by those who need it. */
export const checkpointCare = () =>
  proxyActivities<CheckpointActivities>({
    priority: SOON,
    startToCloseTimeout: '30 minutes',
    heartbeatTimeout: '30s',
    retry: { ...PATIENT, maximumAttempts: 5 },
  });

/** What was paid for is put away, and counted, however long the store is out of reach. */
export const keepingTrials = () =>
  proxyActivities<KeptTrialsActivities & CutOffActivities>({
    priority: SOON,
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '15s',
    retry: PATIENT,
  });

export const modelChecks = () =>
  proxyActivities<PreflightActivities & BranchCheckActivities>({
    ...TO_ITS_END,
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: '60s',
    retry: { ...PATIENT, maximumAttempts: 5 },
  });

export const sandboxChecks = ({ queues }: RunPlan) =>
  proxyActivities<SandboxActivities>({
    ...TO_ITS_END,
    taskQueue: queues.rollouts,
    startToCloseTimeout: '20 minutes',
    heartbeatTimeout: '30s',
    retry: { ...PATIENT, maximumAttempts: 5 },
  });

export const rollouts = ({ queues, episodeTimeoutMs }: RunPlan) =>
  proxyActivities<RolloutActivities>({
    taskQueue: queues.rollouts,
    startToCloseTimeout: attemptLimitMs(episodeTimeoutMs),
    heartbeatTimeout: '10s',
    ...TO_ITS_END,
    retry: PATIENT,
  });

export const teacher = () =>
  proxyActivities<TeacherActivities>({ ...TO_ITS_END, startToCloseTimeout: '1 hour', heartbeatTimeout: '10s', retry: PATIENT });

export const training = ({ queues }: RunPlan) =>
  proxyActivities<TrainingActivities & WarmupTrainingActivities>({
    taskQueue: queues.training,
    startToCloseTimeout: '24 hours',
    // An attempt that comes again only waits for what its forerunner sent: short, so that it comes soon.
    heartbeatTimeout: '10s',
    retry: PATIENT,
  });

/** Ends when it is cancelled, which nobody waits for. */
export const keeping = ({ queues }: RunPlan) =>
  proxyActivities<KeepTrainingActivities>({
    taskQueue: keepQueueOf(queues.training),
    startToCloseTimeout: '365 days',
    heartbeatTimeout: '30s',
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    retry: PATIENT,
  });
