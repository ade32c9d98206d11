import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LedgerEntry } from './checkpoint-ledger.ts';
import { FakeService, HOUR_MS, KeptRun } from './testing/kept-run.ts';

/** Steps and waits of any length, up to a month. */
const moves = fc.array(
  fc.oneof(
    fc.record({ refresh: fc.boolean(), save: fc.boolean(), solveRate: fc.option(fc.double({ min: 0, max: 1, noNaN: true })) }),
    fc.integer({ min: 1, max: 30 * 24 * 3600 }).map((seconds) => seconds * 1000),
  ),
  { maxLength: 40 },
);
const ttlSeconds = fc.option(fc.integer({ min: 3600, max: 40 * 24 * 3600 }));
const keepLast = fc.option(fc.integer({ min: 1, max: 4 }));
/** The longest life that the service gives, whatever is asked for. */
const capMs = fc.option(fc.integer({ min: 1, max: 2_000 }).map((hours) => hours * HOUR_MS));

function played(run: KeptRun, steps: readonly (number | Parameters<KeptRun['finishStep']>[0])[]): void {
  for (const move of steps) typeof move === 'number' ? run.wait(move) : run.finishStep(move);
}

/** Longer than a service's own life of sixty days, which at half of it has as much left as a run asks for at least. */
const aSaveAndThreeMonths = [{ refresh: false, save: true, solveRate: null }, ...Array<number>(3).fill(30 * 24 * HOUR_MS)];

describe('a run that keeps its checkpoints', () => {
  it('never lets expire or deletes what it needs, whatever life the service gives', () => {
    fc.assert(
      fc.property(moves, ttlSeconds, keepLast, capMs, (steps, ttl, last, cap) => {
        const service = new FakeService(cap);
        const watch = ({ pins, nowMs }: KeptRun) => {
          for (const path of pins.keys()) expect(service.has(path, nowMs)).toBe(true);
        };
        played(new KeptRun({ ttlSeconds: ttl, keepLast: last }, service, watch), steps);
      }),
      { examples: [[aSaveAndThreeMonths, null, null, 60 * 24 * HOUR_MS]] },
    );
  });

  it('has no timer at all where nothing expires', () => {
    fc.assert(
      fc.property(moves, keepLast, (steps, last) => {
        let tended = 0;
        const run = new KeptRun({ ttlSeconds: null, keepLast: last }, new FakeService(), () => tended++);
        played(
          run,
          steps.filter((move) => typeof move !== 'number'),
        );
        tended = 0;
        run.wait(1_000 * 24 * HOUR_MS);
        expect(tended).toBe(1);
      }),
    );
  });

  it('keeps the newest of each kind and what it needs, and deletes the rest; what could not be deleted goes later', () => {
    fc.assert(
      fc.property(moves, fc.integer({ min: 1, max: 4 }), (steps, last) => {
        const service = new FakeService();
        service.canDelete = false;
        const run = new KeptRun({ ttlSeconds: null, keepLast: last }, service, () => {});
        played(run, steps);
        expect(run.there.length).toBe(service.expiry.size);
        service.canDelete = true;
        run.finishStep({ refresh: true, save: true, solveRate: null });
        const unneeded = ({ kind }: Pick<LedgerEntry, 'kind'>) =>
          run.there.filter((entry) => entry.kind === kind && !run.pins.has(entry.path)).length;
        for (const kind of ['state', 'sampler'] as const) expect(unneeded({ kind })).toBeLessThan(last);
        expect(run.there.map(({ path }) => path).toSorted()).toEqual([...service.expiry.keys()].toSorted());
      }),
    );
  });

  it('waits for a year with a life of two hours on a few renewals', () => {
    let renewals = 0;
    const run = new KeptRun({ ttlSeconds: 7200, keepLast: null }, new FakeService(), () => renewals++);
    run.finishStep({ refresh: true, save: true, solveRate: 0.5 });
    run.wait(365 * 24 * HOUR_MS);
    expect(renewals).toBeLessThan(80);
  });

  it('carries a small ledger through 500 steps that all save', () => {
    const play = (rules: { ttlSeconds: number | null; keepLast: number | null }) => {
      const run = new KeptRun(rules, new FakeService(), () => {});
      for (let step = 0; step < 500; step++) {
        run.finishStep({ refresh: true, save: true, solveRate: step % 10 === 0 ? step / 1000 : null });
        run.wait(600_000);
      }
      return JSON.stringify(run.ledger).length;
    };
    expect(play({ ttlSeconds: 7200, keepLast: null })).toBeLessThan(40_000);
    expect(play({ ttlSeconds: null, keepLast: 3 })).toBeLessThan(40_000);
    expect(play({ ttlSeconds: null, keepLast: null })).toBeLessThan(400_000);
  });
});
