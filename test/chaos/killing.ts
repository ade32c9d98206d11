import { setTimeout as sleep } from 'node:timers/promises';
import { type Process, processes } from '../support/process-tree.ts';
import type { Signal, Target } from './schedule.ts';
import type { UpProcess } from './up-process.ts';

/** How long a stopped process stays stopped. */
const STOPPED_MS = 30_000;

/** A signal that was sent, and to whom. */
export type Hit = { readonly pid: number; readonly target: Target; readonly signal: Signal; readonly atMs: number };

/** Sends signals to the parts of a running `stillroom up`. */
export class Killer {
  private readonly up: UpProcess;
  private readonly stopped = new Map<number, { readonly process: Process; readonly timer: NodeJS.Timeout }>();

  constructor(up: UpProcess) {
    this.up = up;
  }

  /**
   * Hits one living process of `target`: `preferredPid` where it is one of them, else the `pick`th. One that is stopped just now is passed
   * over. Null when there is none.
   */
  hit(target: Target, signal: Signal, pick: number, preferredPid: number | null = null): Hit | null {
    const living = this.up.partsOf(target).filter(({ pid }) => !this.stopped.has(pid));
    const chosen = living.find(({ pid }) => pid === preferredPid) ?? living[pick % Math.max(1, living.length)];
    if (!chosen) return null;
    process.kill(chosen.pid, signal);
    if (signal === 'SIGSTOP') this.continueLater(chosen);
    return { pid: chosen.pid, target, signal, atMs: Date.now() };
  }

  /** Resolves when no process is stopped any more. */
  async allContinued(): Promise<void> {
    while (this.stopped.size > 0) await sleep(100);
  }

  /** Continues what is stopped at once, so that it can end. */
  dispose(): void {
    for (const pid of [...this.stopped.keys()]) this.goOn(pid);
  }

  private continueLater(process: Process): void {
    const timer = setTimeout(() => this.goOn(process.pid), STOPPED_MS);
    this.stopped.set(process.pid, { process, timer });
  }

  private goOn(pid: number): void {
    const found = this.stopped.get(pid);
    this.stopped.delete(pid);
    if (!found) return;
    clearTimeout(found.timer);
    // Not a later process with the same pid.
    if (!processes().some((other) => other.pid === pid && other.born === found.process.born)) return;
    process.kill(pid, 'SIGCONT');
  }
}
