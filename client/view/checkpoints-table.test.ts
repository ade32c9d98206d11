import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import type { SavedPath } from '../../core/training/checkpoint-ledger.ts';
import type { CheckpointRow, CheckpointsView } from '../../core/training/checkpoint-view.ts';
import { checkpointsText } from './checkpoints-table.ts';

const plain = pc.createColors(false);
const row = (known: Partial<CheckpointRow>): CheckpointRow => ({
  path: 'tinker://m/weights/step-0001' as SavedPath,
  kind: 'state',
  name: 'step-0001',
  step: 1,
  savedAt: '2026-01-01T00:00:00.000Z',
  expiresAt: null,
  pinned: [],
  wouldSweep: false,
  undeleted: null,
  gone: null,
  ...known,
});
const view = (rows: readonly CheckpointRow[], known: Partial<CheckpointsView> = {}): CheckpointsView => ({
  rows,
  ttlSeconds: null,
  keepLast: null,
  dropped: 0,
  nextRenewalAt: null,
  warning: null,
  bases: [],
  ...known,
});
const text = (shown: CheckpointsView, sweep = false, isDone = false) => checkpointsText(shown, { sweep, isDone }, plain);

describe('the ledger as a table', () => {
  it('has a line for each, with its end, why it is kept, and whether it would go', () => {
    const at = '2026-01-02T03:04:05.000Z';
    const lines = text(
      view(
        [
          row({ gone: { at, by: 'sweep' } }),
          row({ expiresAt: at, wouldSweep: true }),
          row({ expiresAt: 'unknown', undeleted: 'no' }),
          row({ pinned: ['in use', 'last'] }),
        ],
        { keepLast: 1, ttlSeconds: 43_200, nextRenewalAt: at },
      ),
    ).split('\n');
    expect(lines.map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
      'step | kind | expires (UTC) | kept as | sweep | path',
      'step-0001 | state | swept 2026-01-02 03:04 | tinker://m/weights/step-0001',
      'step-0001 | state | 2026-01-02 03:04 | would go | tinker://m/weights/step-0001',
      'step-0001 | state | unknown | not deleted | tinker://m/weights/step-0001',
      'step-0001 | state | never | in use, last | tinker://m/weights/step-0001',
      '',
      'Saves ask for a life of 12 h; what is needed is renewed before.',
      'The next life is renewed at 2026-01-02 03:04.',
      'A sweep that keeps the last 1 would delete 1.',
      'The service did not delete step-0001 (state): no',
    ]);
  });

  it('a dry run says that nothing was deleted, and how to; one that was done says so', () => {
    const going = view([row({ wouldSweep: true })], { keepLast: 1 });
    expect(text(going, true)).toMatch(/would delete 1; nothing was deleted: --yes does\s+it\./);
    expect(text(view([row({})], { keepLast: 1 }), true, true)).toContain('Swept: nothing is left to go.');
    expect(text(view([row({})], { keepLast: 1 }), true)).toContain('A sweep would delete nothing.');
  });

  it('a warning and dropped lines are told; no rows are nothing saved', () => {
    expect(text(view([row({})], { warning: 'step-0001 (state) will expire', dropped: 7 }))).toMatch(
      /will expire(.|\n)*7 older lines are not kept/,
    );
    expect(text(view([]))).toBe('nothing was saved yet');
  });
});
