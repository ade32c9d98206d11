import { ActivityFailure, CancellationScope, condition } from '@temporalio/workflow';
import {
  bookWithout,
  type CheckpointLedger,
  compacted,
  type Expiry,
  type LedgerEntry,
  type SavedPath,
  type TrainingBase,
  withEnded,
  withMeasured,
  withSaved,
} from '../core/training/checkpoint-ledger.ts';
import { isNothing, type KeepRules, nextDueMs, planText, type TendPlan, tendPlan } from '../core/training/checkpoint-lives.ts';
import { withTended } from '../core/training/checkpoint-tending.ts';
import { baseText, type CheckpointsView, lifeWarning, survivingBases, viewOf } from '../core/training/checkpoint-view.ts';
import { forget, isUsed } from './checkpoint-facts.ts';
import { checkpointCare } from './proxies.ts';
import { pinsIn, type RunFacts } from './run-state.ts';

/** What the keeping must know of the run, and whom it tells. */
export type KeptRun = { readonly facts: RunFacts; note(notice: string): void };

const NO_RULES: KeepRules = { ttlSeconds: null, keepLast: null };

/** After this long a service that could not be asked at all is asked again. */
const ASK_AGAIN_MS = 5 * 60_000;

/** Some services do not say how long they keep things: after the shortest life that there is, the run looks. */
const SHORTEST_LIFE_MS = 3_600_000;

/**
 * Keeps what a run saved alive for as long as it is needed, and lets the rest go: beside whatever the run does or waits for. A timer runs only
 * while something that is needed would expire.
 */
export class CheckpointKeeping {
  private readonly run: KeptRun;
  private isNew = false;
  private isWoken = false;
  private isClosing = false;
  private askAgainAtMs: number | null = null;
  private tending: Promise<void> = Promise.resolve();
  private loop: Promise<void> | null = null;

  constructor(run: KeptRun) {
    this.run = run;
  }

  /** Begins to keep. What is needed must stay also while a cancelled run saves what it has. */
  start(): void {
    this.loop = CancellationScope.nonCancellable(() => this.keep());
  }

  /** Ends the keeping, so that the execution can end. What is under way is finished. */
  async stop(): Promise<void> {
    this.isClosing = true;
    await CancellationScope.nonCancellable(async () => this.loop);
  }

  /** Enters what was just saved. */
  saved(entry: Pick<LedgerEntry, 'path' | 'kind' | 'name' | 'step'>): void {
    const { ttlSeconds } = this.rules;
    this.ledger = withSaved(this.ledger, { ...entry, ttlMs: ttlSeconds === null ? null : ttlSeconds * 1000 }, Date.now());
    this.isNew = true;
  }

  /** Looks after what was saved since the last time, beside what the run does now. */
  wake(): void {
    this.isWoken ||= this.isNew;
    this.isNew = false;
  }

  /** Enters how good the weights of a step are; the best stay. */
  measured(step: number, solveRate: number | null): void {
    this.ledger = withMeasured(this.ledger, step, solveRate);
  }

  /** What training can be rebuilt from now, the best first; what the run started from is the last. */
  bases(): readonly [TrainingBase, ...TrainingBase[]] {
    return survivingBases(this.ledger, Date.now());
  }

  view(keepLast?: number): CheckpointsView {
    const rules = keepLast === undefined ? this.rules : { ...this.rules, keepLast };
    return viewOf(this.ledger, pinsIn(this.run.facts), rules, Date.now());
  }

  /** Deletes what `keepLast` sweeps, and ends with what the service did not delete. Returns the ledger after it. */
  async sweep(keepLast: number): Promise<CheckpointsView> {
    const rules = { ...this.rules, keepLast };
    for (let left = Number.POSITIVE_INFINITY; ; ) {
      await this.tend((ledger) => ({ ...tendPlan(ledger, pinsIn(this.run.facts), rules, Date.now()), look: [], renew: [] }));
      const after = this.view(keepLast);
      const { length } = after.rows.filter(({ wouldSweep }) => wouldSweep);
      if (length === 0 || length >= left) return after;
      left = length;
    }
  }

  /** The last look before the run ends: what it leaves gets a long life, since nobody renews it any more. */
  async leave(): Promise<void> {
    await this.tend((ledger) => tendPlan(ledger, pinsIn(this.run.facts), this.rules, Date.now(), true));
  }

  /**
   * Finds out what is gone of what the run needs, where its time is over or, after `sinceMs` without a look, where nobody knows its time.
   * Takes it out of the facts, but for the final weights, and says so. Returns what of it is gone.
   */
  async takeStock(sinceMs: number): Promise<ReadonlySet<SavedPath>> {
    const suspect = this.needed().filter(({ expires }) => (expires === 'unknown' ? sinceMs >= SHORTEST_LIFE_MS : isOver(expires)));
    if (suspect.length > 0) await this.tend(() => ({ look: suspect.map(({ path }) => path), renew: [], remove: [] }));
    const gone = this.ledger.entries.filter(({ path, gone }) => gone !== null && isUsed(this.run.facts, path));
    const paths = new Set(gone.map(({ path }) => path));
    if (gone.length === 0) return paths;
    forget(this.run.facts, paths);
    const names = gone.map(({ name, kind }) => `${name} (${kind})`).join(', ');
    this.run.note(
      `expired on the service and gone: ${names}. Training can be rebuilt from ${this.bases().map(baseText).join(', else from ')}`,
    );
    return paths;
  }

  private get rules(): KeepRules {
    return this.run.facts.pinned?.plan.checkpoints ?? NO_RULES;
  }

  private get ledger(): CheckpointLedger {
    return this.run.facts.ledger;
  }

  private set ledger(ledger: CheckpointLedger) {
    this.run.facts.ledger = ledger;
  }

  private needed(): readonly LedgerEntry[] {
    const pins = pinsIn(this.run.facts);
    return this.ledger.entries.filter(({ path, gone }) => gone === null && pins.has(path));
  }

  private async keep(): Promise<void> {
    while (!this.isClosing) {
      const wokenOrClosing = () => this.isWoken || this.isClosing;
      const dueMs = this.dueMs();
      if (dueMs === null) await condition(wokenOrClosing);
      else await condition(wokenOrClosing, Math.max(1, dueMs - Date.now()));
      if (this.isClosing) return;
      this.isWoken = false;
      await this.tend((ledger) => tendPlan(ledger, pinsIn(this.run.facts), this.rules, Date.now()));
    }
  }

  private dueMs(): number | null {
    const due = [nextDueMs(this.ledger, pinsIn(this.run.facts), this.rules), this.askAgainAtMs].flatMap((ms) => ms ?? []);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Carries out a plan, one at a time. A service that does not answer is asked again later; it never fails the run. */
  private tend(planOf: (ledger: CheckpointLedger) => TendPlan): Promise<void> {
    const turn = this.tending.then(() => CancellationScope.nonCancellable(() => this.carryOut(planOf(this.ledger))));
    this.tending = turn.catch(() => {});
    return turn;
  }

  private async carryOut(plan: TendPlan): Promise<void> {
    this.askAgainAtMs = null;
    if (isNothing(plan)) return;
    try {
      const result = await checkpointCare().tendCheckpoints.executeWithOptions({ summary: `checkpoints · ${planText(plan)}` }, [plan]);
      this.ledger = withTended(this.ledger, plan, result, Date.now());
      if (!result.isListRead) this.askAgainAtMs = Date.now() + ASK_AGAIN_MS;
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      this.askAgainAtMs = Date.now() + ASK_AGAIN_MS;
    }
    this.tidy();
    const warning = lifeWarning(this.ledger, pinsIn(this.run.facts), Date.now());
    if (warning !== null && !this.run.facts.notices.includes(warning)) this.run.note(warning);
  }

  /** Drops what is gone from the places to go on from, and keeps the ledger small. */
  private tidy(): void {
    const pins = pinsIn(this.run.facts);
    const isNeeded = ({ path }: LedgerEntry) => pins.has(path);
    const ended = withEnded(this.ledger, isNeeded, Date.now());
    const gone = new Set(ended.entries.flatMap((entry) => (entry.gone === null ? [] : [entry.path])));
    this.run.facts.checkpoints = bookWithout(this.run.facts.checkpoints, (path) => gone.has(path) && !pins.has(path));
    this.ledger = compacted(ended, isNeeded);
  }
}

const isOver = (expires: Expiry) => typeof expires === 'number' && expires <= Date.now();
