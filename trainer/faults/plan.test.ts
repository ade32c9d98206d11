import { describe, expect, it } from 'vitest';
import { readPlan } from './plan.ts';

const drop = { kind: 'drop' };

describe('a fault plan', () => {
  it('fills in what a rule leaves out', () => {
    const [once, lasting] = readPlan(
      JSON.stringify([
        { on: 'asample', fault: drop },
        { on: 'asample', fault: { kind: 'context_limit', tokens: 100 } },
      ]),
      'plan.json',
    );
    expect(once).toEqual({ on: 'asample', nth: 1, times: 1, seed: 0, fault: drop });
    expect(lasting?.times).toBe('always');
  });

  it('may be what GET /faults answers; the counters in it are passed over', () => {
    const rules = [{ on: 'asample', fault: drop }];
    const answer = { rules: rules.map((rule) => ({ ...rule, matched: 3, fired: 1 })) };
    expect(readPlan(JSON.stringify(answer), 'p')).toEqual(readPlan(JSON.stringify(rules), 'p'));
    expect(() => readPlan('{"rules": [{"on": "asampl"}, 7]}', 'p')).toThrow(/^p: rule 1, on: .*\np: rule 1, fault: .*\np: rule 2: /);
  });

  it.each([
    ['nonsense', 'is no JSON'],
    [{}, 'the plan: '],
    [[{ on: 'asampl', fault: drop }], 'rule 1, on: is no call'],
    [[{ on: 'asample' }], 'rule 1, fault: '],
    [[{ on: 'asample', fault: { kind: 'dropp' } }], 'rule 1, fault.kind: '],
    [[{ on: 'asample', fault: drop, nht: 2 }], 'rule 1: Unrecognized key: "nht"'],
    [[{ on: 'asample', fault: { kind: 'drop', ms: 1 } }], 'rule 1, fault: Unrecognized key: "ms"'],
    [
      [
        { on: '*', fault: drop },
        { on: 'asample', fault: { kind: 'hang' } },
      ],
      'rule 2, fault.ms: ',
    ],
    [[{ on: 'asample', fault: { kind: 'status', status: 418 } }], 'rule 1, fault.status: '],
    [[{ on: 'asample', fault: { kind: 'status', status: 402, invalid_token: true } }], 'rule 1, fault.invalid_token: '],
    [[{ on: 'asample', fault: drop, nth: 0 }], 'rule 1, nth: '],
    [[{ on: 'asample', fault: drop, times: 'ever' }], 'rule 1, times: is a count from 1 on, or "always"'],
    [[{ on: 'asample', fault: drop, probability: 1.5 }], 'rule 1, probability: '],
    [[{ on: 'retrieve_future', for: 'Sampel', fault: drop }], 'rule 1, for: '],
    [[{ on: 'asample', fault: { kind: 'pending', polls: 1 } }], 'rule 1, on: pending happens on retrieve_future only'],
    [[{ on: 'save_weights', fault: { kind: 'drop_moments' } }], 'rule 1, on: drop_moments happens on load_weights only'],
    [[{ on: 'retrieve_future', fault: { kind: 'pending' } }], 'rule 1, fault.polls: give either polls or ms'],
    [[{ on: 'retrieve_future', fault: { kind: 'jitter', amount_nats: -1 } }], 'rule 1, fault.amount_nats: '],
    [[{ on: '*', fault: { kind: 'logprobs', value: 'nan', at: [1], share: 0.5 } }], 'rule 1, fault.share: '],
  ])('%j is refused: %s', (plan, words) => {
    const text = typeof plan === 'string' ? plan : JSON.stringify(plan);
    expect(() => readPlan(text, 'plan.json')).toThrow(`plan.json: ${words}`);
  });

  it('names every mistake', () => {
    const text = JSON.stringify([{ on: 'asampl', nth: 0, fault: { kind: 'hang', ms: 0 } }]);
    expect(() => readPlan(text, 'p')).toThrow(/^p: rule 1, on: .*\np: rule 1, nth: .*\np: rule 1, fault\.ms: /);
  });
});
