import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageName } from '../core/run/decision.ts';
import type { Wait } from '../core/run/phase.ts';
import { askYesNo } from './ask.ts';
import { CliError } from './errors.ts';
import { isAbort } from './interrupt.ts';
import type { RunClient } from './run-client.ts';

export type Message = { readonly name: MessageName; readonly extra?: Record<string, unknown> };

/** What yes and no mean for each question that a word can answer. A budget needs a number, a pause somebody's resume. */
const ANSWERS: Partial<Record<Wait['kind'], { readonly yes: Message; readonly no: Message }>> = {
  cost: { yes: { name: 'confirmCost' }, no: { name: 'declineCost' } },
  teacher: { yes: { name: 'continueAnyway' }, no: { name: 'stop' } },
  promotion: { yes: { name: 'decidePromotion', extra: { approve: true } }, no: { name: 'decidePromotion', extra: { approve: false } } },
};

/** How often an open question looks whether somebody else has answered it, through another door. */
const LOOK_MS = 1_000;

export const isAskable = (wait: Wait): boolean => ANSWERS[wait.kind] !== undefined;

/** The message that a yes or no to this kind of question sends; null where a word is no answer. */
export function answerTo(kind: Wait['kind'], yes: boolean): Message | null {
  const answers = ANSWERS[kind];
  return answers ? (yes ? answers.yes : answers.no) : null;
}

export type Asking = {
  readonly decision: (waitId: string) => Record<string, unknown>;
  readonly tell: (text: string) => void;
  readonly signal: AbortSignal;
  /** What just Enter means; null asks again. */
  readonly byDefault: boolean | null;
};

/** Asks the person at the terminal and sends the answer. The question goes away when the run has its answer from elsewhere. */
export async function askPerson(run: Pick<RunClient, 'status' | 'send'>, wait: Wait, asking: Asking): Promise<void> {
  if (!isAskable(wait)) return;
  const elsewhere = new AbortController();
  const done = new AbortController();
  const looking = lookElsewhere(run, wait.id, elsewhere, done.signal);
  try {
    const yes = await askYesNo(wait.question, AbortSignal.any([elsewhere.signal, asking.signal]), asking.byDefault);
    const answer = answerTo(wait.kind, yes);
    if (answer) await run.send(answer.name, { ...asking.decision(wait.id), ...answer.extra });
  } catch (error) {
    if (asking.signal.aborted) throw error;
    if (isAbort(error)) asking.tell('\nanswered through another door');
    else if (error instanceof CliError) asking.tell(error.message);
    else throw error;
  } finally {
    done.abort();
    await looking;
  }
}

async function lookElsewhere(run: Pick<RunClient, 'status'>, waitId: string, elsewhere: AbortController, done: AbortSignal) {
  while (!done.aborted) {
    await sleep(LOOK_MS, undefined, { signal: done }).catch(() => {});
    const status = await run.status().catch(() => null); // following the run reports a server that is away
    if (!done.aborted && status && status.waitingFor?.id !== waitId) return elsewhere.abort();
  }
}
