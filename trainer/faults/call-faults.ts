import { setTimeout as sleep } from 'node:timers/promises';
import type { ActiveRule } from './active-rule.ts';
import { emptyBadRequest, refusal, statusAnswer, tryAgain } from './answers.ts';
import { type Call, contextTokens } from './call.ts';
import type { FaultBook } from './fault-book.ts';
import type { Fault, FaultOf, ResultFault } from './fault-schemas.ts';

export type CallFault = Exclude<Fault, ResultFault>;

/** What the faults make of a call that reaches the service. Rules add to it in the plan's order. */
export type Course = {
  body: Uint8Array<ArrayBuffer>;
  /** Hand the call in twice, and answer with this one's answer. */
  duplicate: 'first' | 'second' | null;
  delayMs: number;
  /** The answer is lost on its way. */
  isAnswerLost: boolean;
  /** What is saved under a name does not stay. */
  isForgotten: boolean;
};

export const straight = (call: Call): Course => ({
  body: call.body,
  duplicate: null,
  delayMs: 0,
  isAnswerLost: false,
  isForgotten: false,
});

/** The end of a call that does not reach the service: an answer, or a connection that is closed. */
export type Ending = Response | 'closed';

/** Whether a call has what the fault needs to happen; other calls are not counted. */
export function concerns(fault: CallFault, call: Call): boolean {
  switch (fault.kind) {
    case 'pending':
      return call.requestId !== null;
    case 'drop_moments':
      return call.json.optimizer === true;
    case 'context_limit':
      return (contextTokens(call)?.total ?? 0) > fault.tokens;
    case 'named_save_does_not_persist':
      return typeof call.json.path === 'string';
    case 'lost_model':
      return call.model !== null;
    case 'lost_session':
      return call.session !== null;
    default:
      return true;
  }
}

/** Faults after which the service does its work all the same. */
type CourseFault = FaultOf<'drop_after' | 'delay_promise' | 'duplicate_promise' | 'drop_moments' | 'named_save_does_not_persist'>;
const COURSE_FAULTS: readonly Fault['kind'][] = [
  'drop_after',
  'delay_promise',
  'duplicate_promise',
  'drop_moments',
  'named_save_does_not_persist',
];
export const isCourseFault = (fault: CallFault): fault is CourseFault => COURSE_FAULTS.includes(fault.kind);

/** Ends the call, if it is the rule's turn. */
export async function endingOf(
  fault: Exclude<CallFault, CourseFault>,
  rule: ActiveRule,
  call: Call,
  book: FaultBook,
): Promise<Ending | null> {
  if (fault.kind === 'pending') {
    return rule.isHeldBack(call.requestId ?? '', fault) ? held(fault.hold_ms, tryAgain(call.requestId, fault)) : null;
  }
  if (rule.next() === null) return null;
  switch (fault.kind) {
    case 'status':
      return statusAnswer(fault);
    case 'empty_400':
      return emptyBadRequest();
    case 'drop':
      return 'closed';
    case 'hang':
      return held(fault.ms, 'closed');
    case 'context_limit': {
      const { total, words } = contextTokens(call) ?? { total: 0, words: '' };
      return refusal(400, `${words} need a context of ${total} tokens, more than the ${fault.tokens} that are served`);
    }
    case 'lost_model':
    case 'lost_session':
      return lose(fault, call, book);
  }
}

/** Changes the course of the call, if it is the rule's turn. */
export function bend(fault: CourseFault, rule: ActiveRule, call: Call, course: Course): void {
  if (rule.next() === null) return;
  switch (fault.kind) {
    case 'drop_after':
      course.isAnswerLost = true;
      return;
    case 'delay_promise':
      course.delayMs += fault.ms;
      return;
    case 'duplicate_promise':
      course.duplicate = fault.send;
      return;
    case 'drop_moments':
      course.body = new TextEncoder().encode(JSON.stringify({ ...call.json, optimizer: false }));
      return;
    case 'named_save_does_not_persist':
      course.isForgotten = true;
      return;
  }
}

function lose(fault: FaultOf<'lost_model' | 'lost_session'>, call: Call, book: FaultBook): Response | null {
  const id = fault.kind === 'lost_model' ? call.model : call.session;
  if (id !== null) book.lose(id, fault.status);
  return lossAnswer(call, book);
}

/** The answer to a call that names something lost; null for all others. */
export function lossAnswer(call: Call, book: FaultBook): Response | null {
  const loss = book.lossOf(call);
  return loss === null ? null : refusal(loss.status, `${loss.what} is unknown`);
}

async function held<T>(ms: number, ending: T): Promise<T> {
  await sleep(ms, undefined, { ref: false });
  return ending;
}
