import { expect, it } from 'vitest';
import { priorSpendUsd, spendOfLedger, spendOfRows } from './recorded-spend.ts';

it('counts a step that was written again once, as it was written last', () => {
  const rows = spendOfRows('{"step":0,"usd":1}\n{"step":1,"usd":5}\n{"step":1,"usd":2}\n{"usd":0.5}\n');
  expect(rows).toEqual({ usd: 3.5, lastStep: 1 });
});

it('a truth value is neither a step nor an amount', () => {
  expect(spendOfRows('{"step":true,"usd":1}\n{"step":0,"usd":true}\n')).toEqual({ usd: 1, lastStep: 0 });
});

it('the ledger wins over the rows, a ledger of zero too', () => {
  const rows = { usd: 1.5, lastStep: 0 };
  expect([priorSpendUsd(rows, 0), priorSpendUsd(rows, null)]).toEqual([0, 1.5]);
});

it.each(['[]', '7', '{"step":'])('refuses the row %s', (line) => {
  expect(() => spendOfRows(`{"usd":1}\n${line}\n`)).toThrow(/metrics\.jsonl line 2/);
});

it.each(['{"total_usd":-1}', '{"total_usd":"1"}', '{}', 'x'])('refuses the ledger %s', (text) => {
  expect(() => spendOfLedger(text)).toThrow(/total_usd/);
});
