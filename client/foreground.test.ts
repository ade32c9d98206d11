import pc from 'picocolors';
import { expect, it } from 'vitest';
import type { Estimate } from '../core/run/results.ts';
import type { Console } from './console.ts';
import { NoAnswer } from './errors.ts';
import { type ForegroundRun, followInForeground } from './foreground.ts';
import { runResult, runStatus } from './testing/runs.ts';

const ESTIMATE: Estimate = {
  lines: [{ meter: 'teacher_sample', tokens: 1e6, pricePerMtokUsd: 2, usd: 2 }],
  pricedUsd: 2,
  unpricedMeters: [],
  fullyPriced: true,
  pricingIsComplete: true,
  trainEpisodes: 8,
  evalEpisodes: 0,
  baselineEpisodes: 0,
  warmupEpisodes: 0,
};
const ASKS = runStatus({
  phase: 'confirm',
  waitingFor: { id: 'cost-1', kind: 'cost', question: 'Start this run? about $2.00.', answers: [], since: '2025-01-31T00:00:00Z' },
});

/** A run that is seen waiting three times before it ends; its first answers about the estimate fail. */
function waitingRun(failures: number): ForegroundRun & { asked: number } {
  let looks = 0;
  return {
    asked: 0,
    state: async () => ({ open: ++looks <= 3, startedAtMs: 0, closedAtMs: null, heldUp: [] }),
    status: async () => ASKS,
    progress: async () => Promise.reject(new Error('no child runs')),
    heldUp: async () => [],
    end: async () => ({ kind: 'completed', result: runResult({ outcome: 'declined' }) }),
    async estimate() {
      if (++this.asked <= failures) throw new NoAnswer('for the estimate');
      return ESTIMATE;
    },
    send: async () => Promise.reject(new Error('nobody answers here')),
  };
}

function logConsole(json: boolean) {
  const printed: string[] = [];
  const console: Console = {
    interactive: false,
    json,
    colors: pc.createColors(false),
    print: (text) => void printed.push(text),
    remark: () => {},
    result: () => {},
  };
  return { printed, console };
}

const follow = (run: ForegroundRun, console: Console) =>
  followInForeground(run, console, { signal: new AbortController().signal, decision: () => ({}) });

it('without a terminal, the estimate stands once in the log, above how to answer', async () => {
  const [run, { printed, console }] = [waitingRun(0), logConsole(false)];
  await follow(run, console);
  const tables = printed.filter((text) => text.includes('USD per million'));
  expect(tables).toHaveLength(1);
  expect(tables[0]).toContain('Estimate: $2.00.');
  expect(printed.findIndex((text) => text.includes('stillroom confirm'))).toBeGreaterThan(printed.indexOf(tables[0] ?? ''));
});

it('asks for the estimate again when no worker answered, and not at all where only JSON is printed', async () => {
  const [late, silent] = [waitingRun(1), waitingRun(0)];
  const log = logConsole(false);
  await Promise.all([follow(late, log.console), follow(silent, logConsole(true).console)]);
  expect(log.printed.filter((text) => text.includes('USD per million'))).toHaveLength(1);
  expect([late.asked, silent.asked]).toEqual([2, 0]);
});
