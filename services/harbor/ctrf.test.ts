import { expect, test } from 'vitest';
import { readTestReport } from './ctrf.ts';

const report = (results: Record<string, unknown>) => JSON.stringify({ results });
const tests = (...statuses: string[]) => statuses.map((status, i) => ({ name: `t${i}`, status }));

test('a list that was cut short does not win over its summary', () => {
  const summary = { passed: 2, failed: 1 };
  expect(readTestReport(report({ summary, tests: tests('passed') }))).toEqual({ passed: 2, resolved: 3, unresolved: 0 });
  expect(readTestReport(report({ summary, tests: tests('passed', 'failed', 'failed') }))).toEqual({
    passed: 1,
    resolved: 3,
    unresolved: 0,
  });
});

test('statuses other than passed and failed are unresolved', () => {
  expect(readTestReport(report({ tests: tests('passed', 'PASSED', 'skipped') }))).toEqual({ passed: 1, resolved: 1, unresolved: 2 });
});

test.each([
  ['nothing resolved', report({ tests: tests('skipped') })],
  ['a negative count', report({ summary: { passed: 1, failed: -1 }, tests: tests('passed') })],
  ['half a file', '{"results": {'],
  ['no file', null],
])('no grade: %s', (_, text) => {
  expect(readTestReport(text)).toBeNull();
});
