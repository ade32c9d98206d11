import type { EvalResult } from '../../core/run/results.ts';
import { stepOfInterim } from '../../core/run/step-name.ts';
import type { Snapshot } from '../follow.ts';
import type { HeldUp } from '../held-up.ts';
import { evaluationName, tasksText } from './evaluations-table.ts';
import { percent } from './format.ts';
import { heldUpText } from './held-up-text.ts';
import { learned } from './row-text.ts';
import { spendText } from './spend-text.ts';
import { waitText } from './wait-text.ts';

/** Silence longer than this is filled with the progress of the trials. */
const QUIET_MS = 20_000;

/** Progress for logs and pipes: a line when something happened, and now and then a sign of life. */
export class PlainProgress {
  private phase = '';
  private step = 0;
  private evaluations = 0;
  private interimStep = 0;
  private notices = 0;
  private heldUp: ReadonlySet<string> = new Set();
  private waitId: string | null = null;
  private trouble: string | null = null;
  private spokeAtMs: number;

  constructor(nowMs: number) {
    this.spokeAtMs = nowMs;
  }

  /** The lines to print for this snapshot; none when nothing happened. */
  lines(snapshot: Snapshot, nowMs: number): string[] {
    const lines = [...this.news(snapshot)];
    if (lines.length === 0 && nowMs - this.spokeAtMs >= QUIET_MS) lines.push(...signOfLife(snapshot));
    if (lines.length > 0) this.spokeAtMs = nowMs;
    return lines;
  }

  private *news({ status, heldUp, trouble }: Snapshot): Generator<string> {
    if (trouble !== this.trouble) {
      this.trouble = trouble;
      if (trouble) yield trouble;
    }
    if (!status) return;
    for (const one of heldUp) if (!this.heldUp.has(causeOf(one))) yield `held up: ${heldUpText(one)}`;
    this.heldUp = new Set(heldUp.map(causeOf));
    for (const evaluation of status.evaluations.slice(this.evaluations)) yield measured(evaluation, 'held-out');
    this.evaluations = status.evaluations.length;
    if (status.lastRow && status.step > this.step) {
      this.step = status.step;
      yield `step ${status.step}/${status.steps}: ${learned(status.lastRow)} · spend ${spendText(status.spend)}`;
    }
    for (const evaluation of status.interim.filter(({ label }) => stepOfInterim(label) > this.interimStep)) {
      this.interimStep = stepOfInterim(evaluation.label);
      yield measured(evaluation, 'training');
    }
    for (const notice of status.notices.slice(this.notices)) yield `note: ${notice}`;
    this.notices = status.notices.length;
    if (status.phase !== this.phase) {
      this.phase = status.phase;
      yield `phase: ${status.outcome ?? status.phase}`;
    }
    const waitId = status.waitingFor?.id ?? null;
    if (waitId !== this.waitId) {
      this.waitId = waitId;
      if (status.waitingFor) yield waitText(status.waitingFor, status.runId);
    }
  }
}

/** What is the same as long as it is held up by the same. */
const causeOf = ({ activity, failure, wait }: HeldUp): string => [activity, wait ? `${wait.call} ${wait.queueState}` : failure].join(' ');

function measured(evaluation: EvalResult, kind: 'held-out' | 'training'): string {
  const { passed, executed } = evaluation;
  const counts = `${passed}/${executed} over ${tasksText(evaluation)} tasks`;
  return `${evaluationName(evaluation)} on ${kind} tasks: ${percent(evaluation.solveRate)} (${counts})`;
}

/** A run that waits for a person has said so and stays silent. */
function signOfLife({ status, progress, trouble }: Snapshot): string[] {
  if (trouble) return [`still: ${trouble}`];
  if (progress) return [`${progress.label}: ${progress.done}/${progress.trials} trials done, ${progress.running} running`];
  if (!status) return ['still starting'];
  return status.waitingFor ? [] : [`still in phase ${status.phase}`];
}
