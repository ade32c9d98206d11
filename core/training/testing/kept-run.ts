import type { SamplerPath, StatePath } from '../../ids.ts';
import { stepName } from '../../run/step-name.ts';
import type { PublishedSampler } from '../../run/trial.ts';
import {
  alive,
  bookWithout,
  type CheckpointLedger,
  compacted,
  type LedgerEntry,
  NO_LEDGER,
  type SavedPath,
  withEnded,
  withMeasured,
  withSaved,
} from '../checkpoint-ledger.ts';
import { isNothing, type KeepRules, nextDueMs, type TendPlan, tendPlan } from '../checkpoint-lives.ts';
import { type Pins, pinsOf } from '../checkpoint-pins.ts';
import { type TendResult, withTended } from '../checkpoint-tending.ts';
import { NO_CHECKPOINTS, resumePoint, withCheckpoint } from '../checkpoints.ts';

export const HOUR_MS = 3_600_000;

export const statePath = (step: number) => `tinker://m/weights/${stepName(step)}` as StatePath;
export const samplerPath = (step: number) => `tinker://m/sampler_weights/${stepName(step)}` as SamplerPath;

/** Training states and samplers of these steps, saved an hour apart, with this life. */
export function ledgerOf(steps: readonly number[], ttlMs: number | null = null): CheckpointLedger {
  return steps.reduce(
    (ledger, step) => withSaved(withSaved(ledger, samplerOf(step, ttlMs), step * HOUR_MS), stateOf(step, ttlMs), step * HOUR_MS),
    NO_LEDGER,
  );
}

const stateOf = (step: number, ttlMs: number | null) => ({
  path: statePath(step),
  kind: 'state' as const,
  name: stepName(step),
  step,
  ttlMs,
});
const samplerOf = (step: number, ttlMs: number | null) => ({
  path: samplerPath(step),
  kind: 'sampler' as const,
  name: stepName(step),
  step,
  ttlMs,
});

export const sampling = (step: number): PublishedSampler => ({
  kind: 'sampler',
  model: 'student',
  path: samplerPath(step),
  version: stepName(step),
});

/** A service on which things really expire. `capMs`: the longest life it gives; null gives any. */
export class FakeService {
  readonly expiry = new Map<SavedPath, number | null>();
  readonly capMs: number | null;
  /** Calls that are refused, and calls that fail at times. */
  canRenew = true;
  canDelete = true;

  constructor(capMs: number | null = null) {
    this.capMs = capMs;
  }

  save(path: SavedPath, ttlMs: number | null, nowMs: number): void {
    this.expiry.set(path, this.endOf(ttlMs, nowMs));
  }

  has(path: SavedPath, nowMs: number): boolean {
    const end = this.expiry.get(path);
    return end === null || (end !== undefined && end > nowMs);
  }

  tend({ look, renew, remove }: TendPlan, nowMs: number): TendResult {
    const renewed = renew.map(({ path, ttlSeconds }) => {
      const isDone = this.canRenew && this.has(path, nowMs);
      if (isDone) this.expiry.set(path, this.endOf(ttlSeconds === null ? null : ttlSeconds * 1000, nowMs));
      return { path, outcome: isDone ? ('done' as const) : ('refused' as const), words: isDone ? '' : 'no' };
    });
    const removed = remove.map((path) => {
      const isDone = this.canDelete && this.expiry.delete(path);
      return { path, outcome: isDone ? ('done' as const) : ('failed' as const), words: isDone ? '' : 'not now' };
    });
    const paths = [...look, ...renew.map(({ path }) => path), ...remove];
    const found = paths.map((path) => {
      const isListed = this.has(path, nowMs);
      return { path, isListed, expires: isListed ? (this.expiry.get(path) ?? null) : ('unknown' as const) };
    });
    return { renewed, removed, found, isListRead: true };
  }

  private endOf(ttlMs: number | null, nowMs: number): number | null {
    if (this.capMs === null) return ttlMs === null ? null : nowMs + ttlMs;
    return nowMs + Math.min(ttlMs ?? this.capMs, this.capMs);
  }
}

/** What a run does with its checkpoints, without the run: saves, moves its sampler, measures, and tends when something is due. */
export class KeptRun {
  ledger: CheckpointLedger = NO_LEDGER;
  nowMs = 0;
  step = 0;
  private book = NO_CHECKPOINTS;
  private sampler: PublishedSampler | null = null;
  private savedState: SavedPath | null = null;
  private readonly rules: KeepRules;
  private readonly service: FakeService;
  /** Told after each change, and just before time jumps. */
  private readonly watch: (run: KeptRun) => void;

  constructor(rules: KeepRules, service: FakeService, watch: (run: KeptRun) => void) {
    this.rules = rules;
    this.service = service;
    this.watch = watch;
  }

  get pins(): Pins {
    const uses = { sampler: this.sampler, published: this.sampler, savedState: this.savedState, book: this.book };
    return pinsOf(this.ledger, { ...uses, resume: resumePoint(this.book), final: null, isPromoted: false });
  }

  get there(): readonly LedgerEntry[] {
    return alive(this.ledger);
  }

  finishStep({ refresh, save, solveRate }: { refresh: boolean; save: boolean; solveRate: number | null }): void {
    this.step++;
    const ttlMs = this.rules.ttlSeconds === null ? null : this.rules.ttlSeconds * 1000;
    if (refresh) {
      this.enter(samplerOf(this.step, ttlMs));
      this.sampler = sampling(this.step);
    }
    if (save) {
      this.enter(stateOf(this.step, ttlMs));
      this.savedState = statePath(this.step);
      this.book = withCheckpoint(this.book, {
        step: this.step,
        statePath: statePath(this.step),
        samplerPath: refresh ? samplerPath(this.step) : null,
      });
    }
    this.ledger = withMeasured(this.ledger, this.step, solveRate);
    this.tend();
  }

  /** Time passes, and what falls due is done when it does. */
  wait(ms: number): void {
    const endMs = this.nowMs + ms;
    for (;;) {
      const dueMs = nextDueMs(this.ledger, this.pins, this.rules);
      if (dueMs === null || dueMs > endMs) break;
      this.nowMs = Math.max(this.nowMs, dueMs);
      this.watch(this);
      this.tend();
    }
    this.nowMs = endMs;
    this.watch(this);
  }

  private enter(saved: Parameters<typeof withSaved>[1]): void {
    this.service.save(saved.path, saved.ttlMs, this.nowMs);
    this.ledger = withSaved(this.ledger, saved, this.nowMs);
  }

  private tend(): void {
    const plan = tendPlan(this.ledger, this.pins, this.rules, this.nowMs);
    if (!isNothing(plan)) this.ledger = withTended(this.ledger, plan, this.service.tend(plan, this.nowMs), this.nowMs);
    const { pins } = this;
    const isNeeded = ({ path }: LedgerEntry) => pins.has(path);
    this.ledger = compacted(withEnded(this.ledger, isNeeded, this.nowMs), isNeeded);
    const gone = new Set(this.ledger.entries.flatMap(({ path, gone }) => (gone === null ? [] : [path])));
    this.book = bookWithout(this.book, (path) => gone.has(path));
    this.watch(this);
  }
}
