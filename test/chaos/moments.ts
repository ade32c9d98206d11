import { setTimeout as sleep } from 'node:timers/promises';
import type { Link } from '../../client/connection.ts';
import { RunClient } from '../../client/run-client.ts';
import type { CallLogFile } from '../support/call-log-file.ts';
import type { Moment } from './schedule.ts';

/** Trials that must be in flight when a kill is to interrupt trials. */
const IN_FLIGHT = 4;
const POLL_MS = 50;

/** The run ended while kills were still to come. */
export class RunEnded extends Error {}

/** Where a run is: its part, and how many of that part's trials are done and running. */
type Place = { readonly label: string; readonly childId: string; readonly done: number; readonly running: number };

/** Knows the moments of a run at which something may be killed. */
export class Moments {
  private readonly link: Link;
  private readonly run: RunClient;
  private readonly calls: CallLogFile;
  private readonly over: AbortSignal;

  /** `over` is aborted when the run has ended. */
  constructor(link: Link, runId: string, calls: CallLogFile, over: AbortSignal) {
    this.link = link;
    this.run = new RunClient(link, runId);
    this.calls = calls;
    this.over = over;
  }

  /** Resolves at the moment, with where the run is; null when it did not come within `limitMs`. @throws RunEnded when it has ended */
  async wait(moment: Moment, limitMs: number): Promise<string | null> {
    const deadline = Date.now() + limitMs;
    return moment === 'trials' ? this.trialsInFlight(deadline) : this.updatePending(deadline);
  }

  /** Resolves when the run has got on: another trial is done, or another part has begun; how long that took. Null after `limitMs`. */
  async recovered(sinceMs: number, limitMs: number): Promise<number | null> {
    let before: Place | null = null;
    while (Date.now() < sinceMs + limitMs && !this.over.aborted) {
      const place = await this.place();
      if (place && before && (place.childId !== before.childId || place.done > before.done)) return Date.now() - sinceMs;
      before ??= place;
      await sleep(4 * POLL_MS);
    }
    return null;
  }

  /** The process that waits for an update's answer, as the server knows it; null where nobody waits for one. */
  async updatingPid(): Promise<number | null> {
    try {
      const { child } = await this.run.status();
      if (!child) return null;
      const { raw } = await this.link.client.withDeadline(Date.now() + 1_000, () =>
        this.link.client.workflow.getHandle(child.workflowId).describe(),
      );
      const update = (raw.pendingActivities ?? []).find(({ activityType }) => activityType?.name === 'trainBatch');
      const pid = Number.parseInt(update?.lastWorkerIdentity ?? '', 10);
      return Number.isInteger(pid) ? pid : null;
    } catch {
      return null; // the kill before may have hit who would answer
    }
  }

  private async trialsInFlight(deadline: number): Promise<string | null> {
    while (Date.now() < deadline) {
      this.requireRunning();
      const place = await this.place();
      if (place && place.running >= IN_FLIGHT && place.done > 0) return place.label;
      await sleep(POLL_MS);
    }
    return null;
  }

  /** The trainer writes down each optimizer step as it has carried it out; its answer is held back. */
  private async updatePending(deadline: number): Promise<string | null> {
    const before = this.calls.optimSteps();
    while (Date.now() < deadline) {
      this.requireRunning();
      const steps = this.calls.optimSteps();
      if (steps > before) return `update ${steps}`;
      await sleep(POLL_MS / 2);
    }
    return null;
  }

  private requireRunning(): void {
    if (this.over.aborted) throw new RunEnded('the run ended before all kills had come');
  }

  /** Null where nobody answers, or nothing runs trials. */
  private async place(): Promise<Place | null> {
    try {
      const { child } = await this.run.status();
      if (!child) return null;
      const { done, running } = await this.run.progress(child.workflowId);
      return { label: child.label, childId: child.workflowId, done, running };
    } catch {
      return null; // whoever would answer was hit
    }
  }
}
