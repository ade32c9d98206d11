import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Journal, type JournalRecord } from './journal.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'journal-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function open(): { journal: Journal; records: JournalRecord[] } {
  const records: JournalRecord[] = [];
  const journal = Journal.open(join(folder, 'j.log'), (record) => records.push(record));
  return { journal, records };
}

describe('a journal', () => {
  it('gives back headers and payloads after it was opened again', () => {
    const first = open().journal;
    first.append({ n: 1 }, new Uint8Array([1, 2, 3]), true);
    first.append({ n: 2, text: 'ü' });
    first.close();
    const { journal, records } = open();
    expect(records.map((record) => record.header)).toEqual([{ n: 1 }, { n: 2, text: 'ü' }]);
    expect([...journal.read(records[0]?.payload ?? { offset: 0, length: 0 })]).toEqual([1, 2, 3]);
    journal.close();
  });

  it('drops a record torn at any byte, keeps the ones before it, and goes on after it', () => {
    const first = open().journal;
    first.append({ n: 1 }, new Uint8Array([9]));
    const whole = first.sizeBytes;
    first.append({ n: 2 }, new Uint8Array([7, 7, 7]));
    first.close();
    const bytes = readFileSync(first.path);
    for (let cut = whole; cut < bytes.length; cut += 1) {
      writeFileSync(first.path, bytes);
      truncateSync(first.path, cut);
      const second = open();
      expect(second.records.map((record) => record.header)).toEqual([{ n: 1 }]);
      second.journal.append({ n: 3 });
      second.journal.close();
      const third = open();
      expect(third.records.map((record) => record.header)).toEqual([{ n: 1 }, { n: 3 }]);
      third.journal.close();
    }
  });

  it('stops at a record whose bytes were damaged', () => {
    const first = open().journal;
    first.append({ n: 1 });
    first.close();
    appendFileSync(first.path, Buffer.alloc(40, 3));
    const { journal, records } = open();
    expect(records).toHaveLength(1);
    expect(statSync(first.path).size).toBe(journal.sizeBytes);
    journal.close();
  });

  it.each([1, 11, 12, 13, 4096])('cuts off a tail of %i zeros, as a power cut leaves it, also in the middle of a record', (zeros) => {
    const first = open().journal;
    first.append({ n: 1 });
    const whole = first.sizeBytes;
    first.append({ n: 2 }, new Uint8Array(9).fill(7));
    const bytes = readFileSync(first.path);
    for (let cut = whole; cut < bytes.length; cut += 1) {
      writeFileSync(first.path, Buffer.concat([bytes.subarray(0, cut), Buffer.alloc(zeros)]));
      const second = open();
      expect(second.records.map((record) => record.header)).toEqual([{ n: 1 }]);
      expect(statSync(first.path).size).toBe(whole);
    }
    writeFileSync(first.path, Buffer.alloc(zeros));
    expect(open().records).toEqual([]);
    expect(statSync(first.path).size).toBe(0);
  });

  it('refuses zeros that whole records follow, and leaves the file as it is', () => {
    const first = open().journal;
    first.append({ n: 1 });
    const damagedAt = first.sizeBytes;
    const after = Buffer.from(readFileSync(first.path));
    const damaged = Buffer.concat([after, Buffer.alloc(4096), after]);
    writeFileSync(first.path, damaged);
    expect(open).toThrow(new RegExp(`j\\.log: damaged at byte ${damagedAt}`));
    expect(readFileSync(first.path)).toEqual(damaged);
  });

  it('refuses a file that is damaged before its end, and leaves it as it is', () => {
    const first = open().journal;
    first.append({ n: 1 });
    const damagedAt = first.sizeBytes;
    first.append({ n: 2 }, new Uint8Array(100));
    const afterIt = first.sizeBytes;
    first.append({ n: 3 });
    first.close();
    const whole = readFileSync(first.path);
    for (let at = damagedAt; at < afterIt; at += 1) {
      const damaged = Buffer.from(whole);
      damaged.writeUInt8(255 - damaged.readUInt8(at), at);
      writeFileSync(first.path, damaged);
      expect(open).toThrow(new RegExp(`j\\.log: damaged at byte ${damagedAt}`));
      expect(readFileSync(first.path)).toEqual(damaged);
    }
  });

  it('is neither read nor written once it is closed', () => {
    const { journal } = open();
    const kept = journal.append({ n: 1 }, new Uint8Array([5]));
    journal.close();
    for (const use of [() => journal.append({ n: 2 }), () => journal.read(kept), () => journal.rewrite([], () => {})]) {
      expect(use).toThrow('j.log: the journal is closed');
    }
    expect(open().records).toHaveLength(1);
  });

  it('can be rewritten to what is still needed', () => {
    const { journal } = open();
    journal.append({ n: 1 }, new Uint8Array(1000));
    const kept = journal.append({ n: 2 }, new Uint8Array([5, 6]));
    const payload = journal.read(kept);
    const seen: JournalRecord[] = [];
    journal.rewrite([{ header: { n: 2 }, payload }], (record) => seen.push(record));
    expect(journal.sizeBytes).toBeLessThan(60);
    expect([...journal.read(seen[0]?.payload ?? kept)]).toEqual([5, 6]);
    journal.append({ n: 4 });
    journal.close();
    expect(open().records.map((record) => record.header)).toEqual([{ n: 2 }, { n: 4 }]);
  });
});
