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

test('a count may be written as text', () => {
  expect(readTestReport(report({ summary: { passed: '2', failed: 1, skipped: '3' } }))).toEqual({ passed: 2, resolved: 3, unresolved: 3 });
});

test.each([
  ['a fraction of a test', report({ summary: { passed: 1.5, failed: 1 } })],
  ['a truth value for a count', report({ summary: { passed: true, failed: 1 } })],
  ['a count in words', report({ summary: { passed: '-1', failed: 1 } })],
  ['a status that is no text', report({ tests: [{ status: null }, { status: 'passed' }] })],
  ['a list that is no list', report({ tests: { t0: 'passed' } })],
  ['another file', '[]'],
  ['nothing resolved', report({ tests: tests('skipped') })],
  ['a negative count', report({ summary: { passed: 1, failed: -1 }, tests: tests('passed') })],
  ['half a file', '{"results": {'],
  ['no file', null],
])('no grade: %s', (_, text) => {
  expect(readTestReport(text)).toBeNull();
});
