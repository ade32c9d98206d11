import {
  CancellationScope,
  ChildWorkflowCancellationType,
  condition,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { addUsage, type Usage } from '../core/measures/usage.ts';
import type { Outcome, Phase } from '../core/run/phase.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import type { TrainingRef } from '../core/run/results.ts';
import { stepName } from '../core/run/step-name.ts';
import type { PublishedSampler } from '../core/run/trial.ts';
import { KeepAlive } from './keep-alive.ts';
import type { RunResult } from './messages.ts';
import { briefActivities } from './proxies.ts';
import { RunBoard } from './run-board.ts';
import { type DeskState, RunDesk } from './run-desk.ts';
import { moneyOf, newFacts, type RunFacts } from './run-state.ts';
import { step } from './step.ts';

/** Thrown through the phases when a person stops the run; `distill` saves what there is and ends it. */
export class RunStopped extends Error {}

export type RunCarry = { readonly facts: RunFacts; readonly desk: DeskState };

/** What a run hands to itself, and nobody else: a second input typed by a person has not this form. */
export const isCarry = (value: unknown): value is RunCarry =>
  typeof value === 'object' && value !== null && 'facts' in value && 'desk' in value;

/** A run in progress: its facts, the desk that takes messages, the board that shows it, and the moves all phases share. */
export class Run {
  readonly facts: RunFacts;
  readonly desk: RunDesk;
  readonly board: RunBoard;
  readonly keepAlive: KeepAlive;

  constructor(carry?: RunCarry) {
    this.facts = carry?.facts ?? newFacts(Date.now());
    this.board = new RunBoard(this.facts, () => this.desk);
    this.desk = new RunDesk(
      { spentUsd: () => this.facts.spend.usd, ended: () => this.facts.phase === 'ended', changed: () => this.board.refresh() },
      carry?.desk,
    );
    this.keepAlive = new KeepAlive(() => this.desk.waitingFor !== null);
    this.desk.open();
    this.board.refresh();
  }

  get pinned(): PinnedRun {
    if (!this.facts.pinned) throw new Error('the run is not resolved yet');
    return this.facts.pinned;
  }

  get training(): TrainingRef {
    if (!this.facts.training) throw new Error('training is not open yet');
    return this.facts.training;
  }

  get sampler(): PublishedSampler {
    if (!this.facts.sampler) throw new Error('no sampler yet');
    return this.facts.sampler;
  }

  /** Runs one phase, and books its wall time under its name. */
  async phase<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
    await this.breathe();
    this.facts.phase = phase;
    this.facts.phaseStartedAtMs = Date.now();
    this.board.refresh();
    try {
      return await work();
    } finally {
      this.bookWallTime();
      this.board.refresh();
    }
  }

  /** Adds the time since the phase began, or since it was last booked, to the phase's wall time. */
  bookWallTime(): void {
    const { phase, phaseStartedAtMs, wallMs } = this.facts;
    const nowMs = Date.now();
    this.facts.wallMs = { ...wallMs, [phase]: (wallMs[phase] ?? 0) + nowMs - phaseStartedAtMs };
    this.facts.phaseStartedAtMs = nowMs;
  }

  note(notice: string): void {
    this.facts.notices = [...this.facts.notices, notice];
    this.board.refresh();
  }

  /** The place where a run can be paused or stopped: before each piece of work that costs something. */
  async breathe(): Promise<void> {
    while (this.desk.paused && !this.desk.stopping)
      await this.desk.ask('pause', 'paused by a person', [...this.commands('resume'), ...this.commands('stop')]);
    if (this.desk.stopping) throw new RunStopped();
  }

  /** Waits at the cap until `usd` more fits under it, however often a person must raise it. */
  async afford(usd: number, what: string): Promise<void> {
    const over = () => this.desk.maxUsd !== null && this.facts.spend.usd + usd > this.desk.maxUsd;
    while (over()) {
      const question = `${what} may cost $${usd.toFixed(4)}; $${this.facts.spend.usd.toFixed(4)} of $${capText(this.desk.maxUsd ?? 0)} are spent. Raise the budget or stop.`;
      const enoughUsd = Math.ceil((this.facts.spend.usd + usd) * 2);
      await this.desk.ask('budget', question, [...this.commands('setBudget', { maxUsd: enoughUsd }), ...this.commands('stop')]);
      await this.breathe();
    }
  }

  async book(usage: Usage): Promise<void> {
    this.facts.usage = addUsage(this.facts.usage, usage);
    const { meters } = this.facts.usage;
    this.facts.spend = await briefActivities().tallySpend({ run: this.pinned.ref, meters });
    this.board.refresh();
  }

  async step(number: number) {
    const { ref: run, trialPrefix, plan, runId } = this.pinned;
    const { guard } = this.facts;
    const money = moneyOf(this.facts);
    return this.child(`step ${number}`, () =>
      startChild(step, {
        workflowId: `${runId}.${stepName(number)}`,
        args: [{ run, trialPrefix, plan, step: number, sampler: this.sampler, training: this.training, guard, money }],
        staticSummary: `step ${number}: ${plan.tasksPerBatch} tasks × ${plan.groupSize}`,
        ...CHILD,
      }),
    );
  }

  /** Runs a child, shows it on the board, and cancels it when a person stops the run. */
  async child<R>(label: string, start: () => Promise<{ workflowId: string; result(): Promise<R> }>): Promise<R> {
    const scope = new CancellationScope({ cancellable: true });
    let settled = false;
    // Not cancellable: when the run is cancelled its scopes cancel the child, and nobody would be there to hear this wait fail.
    const stop = CancellationScope.nonCancellable(() => condition(() => this.desk.stopping || settled)).then(() => {
      if (!settled) scope.cancel();
    });
    try {
      return await scope.run(async () => {
        const handle = await start();
        this.board.child = { workflowId: handle.workflowId, label };
        return handle.result();
      });
    } catch (error) {
      if (this.desk.stopping) throw new RunStopped();
      throw error;
    } finally {
      settled = true;
      this.board.child = null;
      await stop;
    }
  }

  commands(message: string, extra: Record<string, unknown> = {}): string[] {
    const id = workflowInfo().workflowId;
    const input = JSON.stringify({ by: 'you', ...extra });
    return [`temporal workflow update execute --workflow-id ${id} --name ${message} --input '${input}'`];
  }

  end(outcome: Outcome): RunResult {
    this.facts.outcome = outcome;
    this.facts.phase = 'ended';
    this.board.refresh();
    const { verdict, adapter, handoff, weights, evaluations } = this.facts;
    const { resume, spend } = this.board.status();
    return { outcome, runId: workflowInfo().workflowId, verdict, adapter, handoff, weights, resume, evaluations, spend };
  }
}

/** How every child ends with its run. */
export const CHILD = {
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
};

/** A cap in USD; one of less than a cent with its digits. */
const capText = (usd: number) => (usd >= 0.01 ? usd.toFixed(2) : String(usd));
