import { condition, setHandler } from '@temporalio/workflow';
import { z } from 'zod';
import { type DecisionRecord, MAX_NAME_CHARS, MAX_REASON_CHARS, MESSAGES, type MessageName, messageForm } from '../core/run/decision.ts';
import { head, keptDecisions, refusedLine } from '../core/run/decision-book.ts';
import type { Wait } from '../core/run/phase.ts';
import { SIGNAL_TWINS, signalNamed, updateNamed } from './messages.ts';

/** Which question a message answers; the others may come at any time. */
const ANSWERS: Partial<Record<MessageName, Wait['kind']>> = {
  confirmCost: 'cost',
  declineCost: 'cost',
  continueAnyway: 'teacher',
  decidePromotion: 'promotion',
};

/** Messages that may come at any time, and the questions that they answer when they are asked. */
const ALSO_ANSWERS: Partial<Record<MessageName, readonly Wait['kind'][]>> = {
  setBudget: ['budget', 'billing'],
  resume: ['pause', 'billing'],
};

/** Messages that say more than their name, and where. */
const ANSWER_FIELD: Partial<Record<MessageName, string>> = { setBudget: 'maxUsd', decidePromotion: 'approve' };

export type DeskState = {
  readonly decisions: readonly DecisionRecord[];
  readonly waits: number;
  readonly maxUsd: number | null;
  readonly paused: boolean;
  readonly stopping: boolean;
};

/** What the desk must know of the run to judge a message, and whom it tells when something changed. */
export type DeskRoom = { readonly spentUsd: () => number; readonly ended: () => boolean; readonly changed: () => void };

/**
 * Takes every message a person can send to a run, judges it, and keeps the book of decisions.
 * Updates that do not fit are refused with the reason; signals that do not fit are recorded and never applied.
 */
export class RunDesk {
  waitingFor: Wait | null = null;
  maxUsd: number | null;
  paused: boolean;
  stopping: boolean;
  private book: readonly DecisionRecord[];
  private waits: number;
  private readonly room: DeskRoom;

  constructor(room: DeskRoom, state?: DeskState) {
    this.room = room;
    this.book = state?.decisions ?? [];
    this.waits = state?.waits ?? 0;
    this.maxUsd = state?.maxUsd ?? null;
    this.paused = state?.paused ?? false;
    this.stopping = state?.stopping ?? false;
  }

  /** Begins to take messages. Those that came before the run began are handed over at once, so the room must be complete by now. */
  open(): void {
    for (const name of MESSAGES)
      setHandler(updateNamed(name), (input) => this.apply(name, input), { validator: (input) => this.check(name, input) });
    for (const [signal, name] of SIGNAL_TWINS) setHandler(signalNamed(signal), (input) => this.receive(name, input));
  }

  get decisions(): readonly DecisionRecord[] {
    return this.book;
  }

  carry(): DeskState {
    return { decisions: this.book, waits: this.waits, maxUsd: this.maxUsd, paused: this.paused, stopping: this.stopping };
  }

  /** Asks a person and waits, for as long as it takes. Returns the decision, or null when the run was stopped instead. */
  async ask(kind: Wait['kind'], question: string, answers: readonly string[]): Promise<DecisionRecord | null> {
    this.waits++;
    const wait: Wait = { id: `${kind}-${this.waits}`, kind, question, answers, since: new Date().toISOString() };
    this.waitingFor = wait;
    this.room.changed();
    try {
      await condition(() => this.answerTo(wait) !== undefined || this.stopping);
    } finally {
      this.waitingFor = null;
      this.room.changed();
    }
    return this.answerTo(wait) ?? null;
  }

  private answerTo(wait: Wait): DecisionRecord | undefined {
    return this.book.find((line) => line.applied && line.waitId === wait.id);
  }

  private receive(name: MessageName, input: unknown): void {
    try {
      this.check(name, input);
    } catch (error) {
      this.refuse({ ...recordOf(name, input), waitId: null, applied: false, refusal: head((error as Error).message, MAX_REASON_CHARS) });
      return;
    }
    this.apply(name, input);
  }

  private refuse(record: DecisionRecord): void {
    this.book = keptDecisions([...this.book, refusedLine(record)]);
    this.room.changed();
  }

  /** Throws with the reason when the message is malformed or does not fit the state of the run. */
  private check(name: MessageName, input: unknown): void {
    const parsed = messageForm(name).safeParse(input);
    if (!parsed.success) throw new Error(`${name}: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
    const { waitId } = parsed.data;
    const question = ANSWERS[name];
    const over = this.room.ended() ? 'the run has ended' : this.stopping ? 'the run is stopping' : null;
    if (over !== null) throw new Error(`${name}: ${[over, ...this.decided(waitId, question)].join('; ')}`);
    if (waitId !== undefined && waitId !== this.waitingFor?.id) throw new Error(`${name}: ${this.closedWait(waitId)}`);
    if (question !== undefined && this.waitingFor?.kind !== question) throw new Error(`${name}: ${this.notAsked(question)}`);
    if (name === 'setBudget') this.checkBudget((parsed.data as unknown as { maxUsd: number }).maxUsd);
    if (name === 'pause' && this.paused) throw new Error('pause: the run is paused already');
    if (name === 'resume' && !this.paused && this.waitingFor?.kind !== 'billing') throw new Error(`resume: ${this.notHeld()}`);
  }

  private checkBudget(maxUsd: number): void {
    const spentUsd = this.room.spentUsd();
    if (maxUsd <= spentUsd) throw new Error(`setBudget: maxUsd must be above what is spent ($${spentUsd.toFixed(4)}); got ${maxUsd}`);
  }

  private closedWait(waitId: string): string {
    return this.decided(waitId, undefined)[0] ?? `there is no open wait ${waitId}; ${this.openWait()}`;
  }

  private notAsked(kind: Wait['kind']): string {
    return this.decided(undefined, kind)[0] ?? `the run does not ask this now; ${this.openWait()}`;
  }

  /** The decision that was made before on this wait, or on the last one of this kind; empty where none was. */
  private decided(waitId: string | undefined, kind: Wait['kind'] | undefined): string[] {
    const isMeant = (id: string) => (waitId !== undefined ? id === waitId : kind !== undefined && id.startsWith(`${kind}-`));
    const earlier = this.book.findLast((line) => line.applied && line.waitId !== null && isMeant(line.waitId));
    return earlier ? [`${waitId === undefined ? '' : `${waitId} was `}already decided: ${told(earlier)}`] : [];
  }

  /** Why there is nothing to resume. */
  private notHeld(): string {
    const earlier = this.book.findLast((line) => line.applied && line.message === 'resume');
    return `the run is not paused${earlier ? `; it was resumed already: ${told(earlier)}` : ''}`;
  }

  private openWait(): string {
    return this.waitingFor ? `it waits for ${this.waitingFor.id}: ${this.waitingFor.question}` : 'it waits for nothing';
  }

  private apply(name: MessageName, input: unknown): DecisionRecord {
    const answered = this.waitAnsweredBy(name);
    const record: DecisionRecord = { ...recordOf(name, input), waitId: answered, applied: true, refusal: null };
    this.book = keptDecisions([...this.book, record]);
    if (answered !== null) this.waitingFor = null; // at once: the next message may come before the workflow itself goes on
    if (name === 'setBudget') this.maxUsd = record.answer as number;
    if (name === 'pause') this.paused = true;
    if (name === 'resume') this.paused = false;
    if (name === 'stop') this.stopping = true;
    this.room.changed();
    return record;
  }

  private waitAnsweredBy(name: MessageName): string | null {
    const wait = this.waitingFor;
    if (!wait) return null;
    const fits = ANSWERS[name] === wait.kind || ALSO_ANSWERS[name]?.includes(wait.kind);
    return fits ? wait.id : null;
  }
}

/** The book's line for a message as it came; fields that are not there or not of their type read as unknown, and long ones are cut. */
function recordOf(name: MessageName, input: unknown): Omit<DecisionRecord, 'waitId' | 'applied' | 'refusal'> {
  const given = (typeof input === 'object' && input !== null ? input : {}) as Record<string, unknown>;
  const text = (key: string, maxChars: number) => (typeof given[key] === 'string' ? head(given[key], maxChars) : null);
  const field = ANSWER_FIELD[name];
  const answer = field === undefined ? null : given[field];
  return {
    message: name,
    by: text('by', MAX_NAME_CHARS) ?? 'unknown',
    via: text('via', MAX_NAME_CHARS) ?? 'temporal',
    reason: text('reason', MAX_REASON_CHARS),
    at: new Date().toISOString(),
    answer: typeof answer === 'number' || typeof answer === 'boolean' ? answer : null,
  };
}

const told = (line: DecisionRecord) =>
  `${line.message}${line.answer === null ? '' : ` ${line.answer}`} by ${line.by} through ${line.via} at ${line.at}`;
