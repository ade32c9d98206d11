import { beforeEach, describe, expect, test, vi } from 'vitest';
import { MESSAGES, type MessageName } from '../core/run/decision.ts';
import type { Wait } from '../core/run/phase.ts';
import { RunDesk } from './run-desk.ts';
import { type Receiver, receivers } from './testing/receivers.ts';

// A wait never goes on by itself: each message meets the state that the test made.
vi.mock('@temporalio/workflow', async (original) => {
  const { sdkWithReceivers } = await import('./testing/receivers.ts');
  return sdkWithReceivers(await original());
});

const FIELDS: Partial<Record<MessageName, object>> = { setBudget: { maxUsd: 5 }, decidePromotion: { approve: true } };
const input = (name: MessageName, by = 'tester') => ({ by, ...FIELDS[name] });

let desk: RunDesk;
let ended: boolean;
beforeEach(() => {
  ended = false;
  desk = new RunDesk({ spentUsd: () => 1, ended: () => ended, changed: () => {} });
  desk.open();
});

function update(name: MessageName, more: object = {}): void {
  const receiver = receivers.get(`update ${name}`) as Receiver;
  receiver.check({ ...input(name, 'before'), ...more });
  receiver.take({ ...input(name, 'before'), ...more });
}
const asking = (kind: Wait['kind']) => void desk.ask(kind, `the ${kind}?`, []);
const answered = (kind: Wait['kind'], name: MessageName, more?: object) => () => {
  asking(kind);
  update(name, more);
};

const STATES: Readonly<Record<string, () => void>> = {
  'before anything is asked': () => {},
  'asks for the cost': () => asking('cost'),
  'has begun': answered('cost', 'confirmCost'),
  'was declined': answered('cost', 'declineCost'),
  'is to pause': () => update('pause'),
  paused: () => {
    update('pause');
    asking('pause');
  },
  'was resumed': () => {
    update('pause');
    answered('pause', 'resume')();
  },
  'waits for a budget': () => asking('budget'),
  'waits for the bill': () => asking('billing'),
  'waits for the bill, and is to pause': () => {
    update('pause');
    asking('billing');
  },
  'asks whether to train': () => asking('teacher'),
  'asks for the promotion': () => asking('promotion'),
  'was not to promote': answered('promotion', 'decidePromotion', { approve: false }),
  'is stopping': () => update('stop'),
  'is stopping at a wait': answered('promotion', 'stop'),
  'has ended': () => {
    ended = true;
  },
  'has ended promoted': () => {
    answered('promotion', 'decidePromotion')();
    ended = true;
  },
};

const NOT_ASKED = /the run does not ask this now; it waits for/;
const STOPPING = /^\w+: the run is stopping$/;
const ENDED = /^\w+: the run has ended$/;
const decided = (what: string) => new RegExp(`already decided: ${what} by before through temporal at `);
/** What is said to each message that is not taken; those that are not named are. */
type Refused = Partial<Record<MessageName, RegExp>>;
const unasked = { confirmCost: NOT_ASKED, declineCost: NOT_ASKED, continueAnyway: NOT_ASKED, decidePromotion: NOT_ASKED };
const notPaused = { resume: /the run is not paused$/ };
const { confirmCost: _, declineCost: __, ...costAsked } = { ...unasked, ...notPaused };
const all = (reason: RegExp): Refused => Object.fromEntries(MESSAGES.map((name) => [name, reason]));

const REFUSED: Readonly<Record<string, Refused>> = {
  'before anything is asked': { ...unasked, ...notPaused },
  'asks for the cost': costAsked,
  'has begun': { ...unasked, ...notPaused, confirmCost: decided('confirmCost'), declineCost: decided('confirmCost') },
  'was declined': { ...unasked, ...notPaused, confirmCost: decided('declineCost'), declineCost: decided('declineCost') },
  'is to pause': { ...unasked, pause: /paused already/ },
  paused: { ...unasked, pause: /paused already/ },
  'was resumed': { ...unasked, resume: /not paused; it was resumed already: resume by before/ },
  'waits for a budget': { ...unasked, ...notPaused },
  'waits for the bill': unasked,
  'waits for the bill, and is to pause': { ...unasked, pause: /paused already/ },
  'asks whether to train': { confirmCost: NOT_ASKED, declineCost: NOT_ASKED, decidePromotion: NOT_ASKED, ...notPaused },
  'asks for the promotion': { confirmCost: NOT_ASKED, declineCost: NOT_ASKED, continueAnyway: NOT_ASKED, ...notPaused },
  'was not to promote': { ...unasked, ...notPaused, decidePromotion: decided('decidePromotion false') },
  'is stopping': all(STOPPING),
  'is stopping at a wait': all(STOPPING),
  'has ended': all(ENDED),
  'has ended promoted': { ...all(ENDED), decidePromotion: /the run has ended; already decided: decidePromotion true by before/ },
};

/** Which question a message that is taken answers. */
const ANSWERED: Readonly<Record<string, Partial<Record<MessageName, string>>>> = {
  'asks for the cost': { confirmCost: 'cost-1', declineCost: 'cost-1' },
  paused: { resume: 'pause-1' },
  'waits for a budget': { setBudget: 'budget-1' },
  'waits for the bill': { setBudget: 'billing-1', resume: 'billing-1' },
  'waits for the bill, and is to pause': { setBudget: 'billing-1', resume: 'billing-1' },
  'asks whether to train': { continueAnyway: 'teacher-1' },
  'asks for the promotion': { decidePromotion: 'promotion-1' },
};

const stateNow = () => ({ ...desk.carry(), waitingFor: desk.waitingFor, decisions: [...desk.decisions] });

describe.each(Object.keys(STATES))('a run that %s', (state) => {
  test.each(MESSAGES)('%s', (name) => {
    STATES[state]?.();
    const before = stateNow();
    const why = REFUSED[state]?.[name];
    const { check, take } = receivers.get(`update ${name}`) as Receiver;
    if (why === undefined) {
      expect(() => check(input(name))).not.toThrow();
      expect(take(input(name))).toMatchObject({ applied: true, by: 'tester', waitId: ANSWERED[state]?.[name] ?? null });
      expect(desk.decisions).toHaveLength(before.decisions.length + 1);
      expect(desk.waitingFor).toEqual(ANSWERED[state]?.[name] ? null : before.waitingFor);
      return;
    }
    expect(() => check(input(name))).toThrow(why);
    expect(stateNow()).toEqual(before);
    // As a signal it is written down, and changes nothing else.
    receivers.get(`signal ${name}`)?.take(input(name));
    const refused = expect.objectContaining({ message: name, applied: false, waitId: null, refusal: expect.stringMatching(why) });
    expect(stateNow()).toEqual({ ...before, decisions: [...before.decisions, refused] });
  });

  test('nothing that is malformed or answers another wait', () => {
    STATES[state]?.();
    const before = stateNow();
    const { check } = receivers.get('update setBudget') as Receiver;
    for (const bad of [
      undefined,
      null,
      'stop',
      [],
      {},
      { by: ' ', maxUsd: 5 },
      { by: 'x' },
      { by: 'x', maxUsd: 0 },
      { by: 'x', maxUsd: '5' },
    ])
      expect(() => check(bad)).toThrow(/^setBudget: /);
    expect(() => check({ by: 'x', maxUsd: 1 })).toThrow(/above what is spent|has ended|is stopping/);
    expect(() => check({ by: 'x', maxUsd: 5, waitId: 'budget-7' })).toThrow(/no open wait budget-7|has ended|is stopping/);
    expect(stateNow()).toEqual(before);
  });
});
