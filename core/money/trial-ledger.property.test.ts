import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TrialLedger } from './trial-ledger.ts';

const usd = fc.double({ min: 0, max: 10, noNaN: true });
const ROUNDING_USD = 1e-6;

/** What happens to a run's money, in any order. A cap is moved by its distance from what is spent. */
const happening = fc.oneof(
  fc.record({ what: fc.constant('start' as const) }),
  fc.record({ what: fc.constant('settle' as const), which: fc.nat(50), paidUsd: usd, heldUsd: usd }),
  fc.record({ what: fc.constant('move' as const), aboveUsd: usd }),
);
const start = fc.record({ capUsd: fc.double({ min: 0, max: 50, noNaN: true }), spentUsd: usd, heldUsd: usd, perTrialUsd: usd });

it('spent, held and reserved never pass the cap when a trial starts', () => {
  fc.assert(
    fc.property(start, fc.array(happening, { maxLength: 80 }), (begin, happenings) => {
      const ledger = new TrialLedger(begin);
      const running: string[] = [];
      let trials = 0;
      for (const one of happenings) {
        if (one.what === 'move') ledger.setCap(ledger.spentUsd + one.aboveUsd);
        else if (one.what === 'settle') {
          const [trial] = running.splice(one.which % Math.max(1, running.length), 1);
          if (trial) ledger.settle(trial, one);
        } else if (ledger.fits(begin.perTrialUsd)) {
          const trial = `t${trials++}`;
          running.push(trial);
          ledger.reserve(trial, begin.perTrialUsd);
          expect(ledger.spentUsd + ledger.reservedUsd).toBeLessThanOrEqual((ledger.capUsd ?? 0) + ROUNDING_USD);
        }
      }
    }),
  );
});

it('under a cap that stands, what is paid and held passes it by no more than trials cost above their reservations', () => {
  fc.assert(
    fc.property(start, fc.array(happening, { maxLength: 80 }), ({ capUsd, perTrialUsd }, happenings) => {
      const ledger = new TrialLedger({ capUsd, spentUsd: 0, heldUsd: 0, perTrialUsd });
      const running: string[] = [];
      let [trials, above] = [0, 0];
      for (const one of happenings) {
        if (one.what === 'settle') {
          const [trial] = running.splice(one.which % Math.max(1, running.length), 1);
          if (!trial) continue;
          above += Math.max(0, one.paidUsd + one.heldUsd - perTrialUsd);
          ledger.settle(trial, one);
        } else if (one.what === 'start' && ledger.fits(perTrialUsd)) {
          running.push(`t${trials}`);
          ledger.reserve(`t${trials++}`, perTrialUsd);
          above = 0; // whatever was passed before, all fitted again
        }
        expect(ledger.spentUsd + ledger.reservedUsd).toBeLessThanOrEqual(capUsd + above + ROUNDING_USD);
      }
    }),
  );
});

it('trials that keep to their reservations never pass the cap', () => {
  const settle = fc.record({ which: fc.nat(50), share: fc.double({ min: 0, max: 1, noNaN: true }) });
  fc.assert(
    fc.property(start, fc.array(fc.option(settle), { maxLength: 80 }), ({ capUsd, perTrialUsd }, happenings) => {
      const ledger = new TrialLedger({ capUsd, spentUsd: 0, heldUsd: 0, perTrialUsd });
      const running: string[] = [];
      for (const [index, one] of happenings.entries()) {
        if (one === null && ledger.fits(perTrialUsd)) {
          running.push(`t${index}`);
          ledger.reserve(`t${index}`, perTrialUsd);
        }
        const [trial] = one === null ? [] : running.splice(one.which % Math.max(1, running.length), 1);
        if (one && trial) ledger.settle(trial, { paidUsd: perTrialUsd * one.share, heldUsd: perTrialUsd * (1 - one.share) });
        expect(ledger.spentUsd + ledger.reservedUsd).toBeLessThanOrEqual(capUsd + ROUNDING_USD);
      }
    }),
  );
});
