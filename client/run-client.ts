import { randomUUID } from 'node:crypto';
import { QueryNotRegisteredError, WorkflowFailedError, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { DecisionRecord, MessageName, SweepCheckpoints } from '../core/run/decision.ts';
import type { Estimate } from '../core/run/results.ts';
import type { TendResult } from '../core/training/checkpoint-tending.ts';
import type { CheckpointsView } from '../core/training/checkpoint-view.ts';
import {
  checkpointsQuery,
  estimateQuery,
  metricsQuery,
  progressQuery,
  type RunMetrics,
  type RunResult,
  type RunStatus,
  statusQuery,
  sweepCheckpointsUpdate,
  type TidyOrder,
  type TrialProgress,
  updateNamed,
} from '../workflows/messages.ts';
import { COMMAND } from './command-name.ts';
import type { Link } from './connection.ts';
import { CliError, NoAnswer, NoServer } from './errors.ts';
import { type Failure, failureOf } from './failure.ts';
import { grpcCodeOf, UNAVAILABLE } from './grpc.ts';
import { type HeldUp, heldUpIn } from './held-up.ts';

/** How a run's execution ended; `completed` has a result, `failed` says why. */
export type RunEnd = { readonly kind: 'completed'; readonly result: RunResult } | { readonly kind: 'failed'; readonly failure: Failure };

/** Whether an execution is open, as the server sees it; needs no worker. */
export type RunState = {
  readonly open: boolean;
  readonly startedAtMs: number;
  readonly closedAtMs: number | null;
  /** Its own activities that do not get on, not those of its steps and evaluations. */
  readonly heldUp: readonly HeldUp[];
};

/** A question to a worker waits this long, and one to the server alone. */
const ANSWER_WITHIN_MS = 5_000;
const UPDATE_WITHIN_MS = 15_000;
/** The worker in turn asks the service, once for each checkpoint. */
const SWEEP_WITHIN_MS = 5 * 60_000;

/** One run, asked through Temporal. */
export class RunClient {
  readonly runId: string;
  private readonly link: Link;

  constructor(link: Link, runId: string) {
    this.link = link;
    this.runId = runId;
  }

  /** @throws CliError when there is no such run, NoServer when the server does not answer. */
  async state(): Promise<RunState> {
    const found = await this.ask('about the run', ANSWER_WITHIN_MS, () => this.handle(this.runId).describe());
    return {
      open: found.status.name === 'RUNNING' || found.status.name === 'PAUSED' || found.status.name === 'CONTINUED_AS_NEW',
      startedAtMs: found.startTime.getTime(),
      closedAtMs: found.closeTime?.getTime() ?? null,
      heldUp: heldUpIn(found.raw.pendingActivities ?? []),
    };
  }

  /** Activities of a step or an evaluation of this run that do not get on. */
  async heldUp(childId: string): Promise<readonly HeldUp[]> {
    const found = await this.ask('about a part of the run', ANSWER_WITHIN_MS, () => this.handle(childId).describe());
    return heldUpIn(found.raw.pendingActivities ?? []);
  }

  status(): Promise<RunStatus> {
    return this.ask('for the status', ANSWER_WITHIN_MS, () => this.handle(this.runId).query(statusQuery));
  }

  estimate(): Promise<Estimate | null> {
    return this.ask('for the estimate', ANSWER_WITHIN_MS, () => this.handle(this.runId).query(estimateQuery));
  }

  /** The newest rows, how many there are in all, and the file that has them. */
  metrics(): Promise<RunMetrics> {
    return this.ask('for the metrics', ANSWER_WITHIN_MS, () => this.handle(this.runId).query(metricsQuery));
  }

  /** What the run saved on the service; `keepLast`: what a sweep that keeps so many would delete. */
  checkpoints(keepLast?: number): Promise<CheckpointsView> {
    const asked = keepLast === undefined ? {} : { keepLast };
    return this.ask('for the checkpoints', ANSWER_WITHIN_MS, () => this.handle(this.runId).query(checkpointsQuery, asked));
  }

  /** Deletes what a run that goes on does not need. @throws CliError with the run's reason when it refuses */
  sweep(input: SweepCheckpoints): Promise<CheckpointsView> {
    return this.ask('to sweep', SWEEP_WITHIN_MS, () => this.handle(this.runId).executeUpdate(sweepCheckpointsUpdate, { args: [input] }));
  }

  /** Asks the service about checkpoints of a run that has ended, or deletes some, through a worker. */
  tidy(order: TidyOrder, taskQueue: string): Promise<TendResult> {
    return this.ask('for the service', SWEEP_WITHIN_MS, () =>
      this.link.client.workflow.execute('tidyCheckpoints', {
        args: [order],
        workflowId: `${this.runId}.checkpoints-${randomUUID()}`,
        taskQueue,
        workflowExecutionTimeout: SWEEP_WITHIN_MS,
        staticSummary: `checkpoints of ${this.runId}`,
      }),
    );
  }

  /** Progress of a step or an evaluation of this run. */
  progress(childId: string): Promise<TrialProgress> {
    return this.ask('for the progress', ANSWER_WITHIN_MS, () => this.handle(childId).query(progressQuery));
  }

  /** Sends a message and returns what the run recorded. @throws CliError with the run's reason when it refuses. */
  send(name: MessageName, input: unknown): Promise<DecisionRecord> {
    return this.ask(`to ${name}`, UPDATE_WITHIN_MS, () => this.handle(this.runId).executeUpdate(updateNamed(name), { args: [input] }));
  }

  /** How a closed run ended. Waits for the end of an open one. */
  async end(): Promise<RunEnd> {
    try {
      return { kind: 'completed', result: (await this.handle(this.runId).result()) as RunResult };
    } catch (error) {
      if (error instanceof WorkflowFailedError) return { kind: 'failed', failure: failureOf(error) };
      throw this.explain(error, 'for the result');
    }
  }

  private handle(workflowId: string) {
    return this.link.client.workflow.getHandle(workflowId);
  }

  private async ask<T>(what: string, withinMs: number, question: () => Promise<T>): Promise<T> {
    try {
      return await this.link.client.withDeadline(Date.now() + withinMs, question);
    } catch (error) {
      throw this.explain(error, what);
    }
  }

  private explain(error: unknown, what: string): unknown {
    if (error instanceof WorkflowUpdateFailedError) return new CliError(`${this.runId} refused: ${error.cause?.message ?? error.message}`);
    if (error instanceof QueryNotRegisteredError) return new NoAnswer(`${what} of ${this.runId} (${error.message})`);
    if (error instanceof WorkflowNotFoundError)
      return new CliError(
        error.message.includes('already completed')
          ? `${this.runId} has ended; see \`${COMMAND} status ${this.runId}\``
          : `there is no run "${this.runId}" in namespace ${this.link.namespace} at ${this.link.address}; \`${COMMAND} runs\` lists them`,
      );
    const code = grpcCodeOf(error);
    if (code === UNAVAILABLE) return new NoServer(this.link.address);
    return code === null ? error : new NoAnswer(`${what} of ${this.runId}`);
  }
}
