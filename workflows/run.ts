import { CancellationScope, CancelledFailure, workflowInfo } from '@temporalio/workflow';
import { addUsage, NO_USAGE, type Usage } from '../core/measures/usage.ts';
import { type TrialKind, withBatch } from '../core/money/reservations.ts';
import type { Outcome, Phase } from '../core/run/phase.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import type { TrainingRef } from '../core/run/results.ts';
import type { PublishedSampler } from '../core/run/trial.ts';
import type { SavedPath } from '../core/training/checkpoint-ledger.ts';
import { CheckpointKeeping } from './checkpoint-keeping.ts';
import { answerAboutCheckpoints } from './checkpoint-messages.ts';
import { KeepAlive } from './keep-alive.ts';
import type { RunResult } from './messages.ts';
import { briefActivities } from './proxies.ts';
import { RunBoard } from './run-board.ts';
import { type DeskState, RunDesk } from './run-desk.ts';
import { addNotice, newFacts, type RunFacts } from './run-state.ts';

/** Thrown through the phases when a person stops the run; `distill` saves what there is and ends it. */
export class RunStopped extends Error {}

export type RunCarry = { readonly facts: RunFacts; readonly desk: DeskState };

/** What a run hands to itself, and nobody else: a second input typed by a person has not this form. */
export const isCarry = (value: unknown): value is RunCarry =>
  typeof value === 'object' && value !== null && 'facts' in value && 'desk' in value;

/** Makes again what the run needs of these checkpoints, which are gone. */
export type Restore = (run: Run, gone: ReadonlySet<SavedPath>) => Promise<void>;

/** A run in progress: its facts, the desk that takes messages, the board that shows it, and the moves all phases share. */
export class Run {
  readonly facts: RunFacts;
  readonly desk: RunDesk;
  readonly board: RunBoard;
  /** Saves what was trained before the run waits for money, which may take long. */
  saveBeforeWaiting: () => Promise<void> = async () => {};
  readonly keepAlive: KeepAlive;
  readonly keeping: CheckpointKeeping;
  private readonly restore: Restore;
  private lookedAtMs = Date.now();

  constructor(restore: Restore, carry?: RunCarry) {
    this.restore = restore;
    this.facts = { ...newFacts(Date.now()), ...carry?.facts };
    this.keeping = new CheckpointKeeping(this);
    this.board = new RunBoard(this.facts, () => this.desk);
    this.desk = new RunDesk(
      { spentUsd: () => this.facts.spend.usd, ended: () => this.facts.phase === 'ended', changed: () => this.board.refresh() },
      carry?.desk,
    );
    this.keepAlive = new KeepAlive(() => this.desk.waitingFor !== null);
    this.desk.open();
    this.board.refresh();
    answerAboutCheckpoints(this);
    this.keeping.start();
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

  get published(): PublishedSampler {
    if (!this.facts.published) throw new Error('nothing is published yet');
    return this.facts.published;
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
    addNotice(this.facts, notice);
    this.board.refresh();
  }

  /** The place where a run can be paused or stopped: before each piece of work that costs something. A cancelled run begins nothing more. */
  async breathe(): Promise<void> {
    if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('the run was cancelled');
    while (this.desk.paused && !this.desk.stopping)
      await this.desk.ask('pause', 'paused by a person', [...this.commands('resume'), ...this.commands('stop')]);
    if (this.desk.stopping) throw new RunStopped();
    await this.lookAround();
  }

  /** After a wait or a long piece of work: what expired meanwhile is made again before anything relies on it. */
  async lookAround(): Promise<void> {
    const sinceMs = Date.now() - this.lookedAtMs;
    this.lookedAtMs = Date.now();
    const gone = await this.keeping.takeStock(sinceMs);
    if (gone.size > 0) await this.restore(this, gone);
    this.keeping.wake();
  }

  /** Counts finished work, and what its trials cost: `trialUsd` as their activity found it. What was booked of it while it was open goes. */
  async book(usage: Usage, trials?: { readonly kind: TrialKind; readonly trialUsd: number | null }): Promise<void> {
    this.facts.usage = addUsage(this.facts.usage, usage);
    this.facts.openUsage = NO_USAGE;
    this.facts.updateBegun = false;
    if (trials) this.facts.trialCosts = withBatch(this.facts.trialCosts, trials.kind, trials.trialUsd);
    await this.tally();
    this.facts.bookedUsd = this.facts.spend.usd;
  }

  /** Counts what a call beside that work took, e.g. a save: what is open stays open. */
  async bookBeside(usage: Usage): Promise<void> {
    const beforeUsd = this.facts.spend.usd;
    this.facts.usage = addUsage(this.facts.usage, usage);
    await this.tally();
    this.facts.bookedUsd += this.facts.spend.usd - beforeUsd;
  }

  /** Counts what work took that is not finished, all of it so far. */
  async bookOpen(usage: Usage): Promise<void> {
    this.facts.openUsage = usage;
    await this.tally();
  }

  /** Counts work that was broken off as it stands, for good. */
  async bookBrokenOff(): Promise<void> {
    const { openUsage, updateBegun } = this.facts;
    await this.book(openUsage);
    this.facts.updateBegun = updateBegun;
  }

  private async tally(): Promise<void> {
    const { meters } = addUsage(this.facts.usage, this.facts.openUsage);
    const { ref: run } = this.pinned;
    // What was paid is counted, whatever happens to the run around it.
    this.facts.spend = await CancellationScope.nonCancellable(() => briefActivities().tallySpend({ run, meters }));
    this.board.refresh();
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
