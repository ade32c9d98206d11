import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { availableBytes } from './available-memory.ts';
import { expectedPeakBytes, mayStart } from './memory-need.ts';

const MB = 2 ** 20;

it.each([
  { name: 'nothing measured', peaks: [], expected: 300 },
  { name: 'few measured, all below the guess', peaks: [40, 50, 60, 70], expected: 300 },
  { name: 'few measured, one above the guess', peaks: [40, 900], expected: 900 },
  { name: 'enough measured', peaks: [40, 50, 60, 70, 80], expected: 80 },
  { name: 'nearly the most of many', peaks: [...Array.from({ length: 99 }, () => 100), 5000], expected: 100 },
  {
    name: 'many that need much',
    peaks: [...Array.from({ length: 90 }, () => 100), ...Array.from({ length: 10 }, () => 2000)],
    expected: 2000,
  },
  {
    name: 'only the recent ones',
    peaks: [...Array.from({ length: 50 }, () => 5000), ...Array.from({ length: 100 }, () => 90)],
    expected: 90,
  },
  { name: 'sandboxes elsewhere', peaks: [0, 0, 0, 0, 0], expected: 16 },
])('a trial is expected to need $expected MB: $name', ({ peaks, expected }) => {
  expect(
    expectedPeakBytes(
      peaks.map((peak) => peak * MB),
      300 * MB,
    ),
  ).toBe(expected * MB);
});

it.each([
  { running: [], available: 0, starts: true, why: 'one always may' },
  { running: [300], available: 800, starts: true, why: 'reserve and peak fit' },
  { running: [300], available: 799, starts: false, why: 'a megabyte is missing' },
  { running: [0], available: 1099, starts: false, why: 'the one that runs has not taken its own yet' },
  { running: [0], available: 1100, starts: true, why: 'both fit' },
  { running: [900], available: 800, starts: true, why: 'one that took more than expected has it already' },
  { running: [100, 200, 300], available: 1100, starts: true, why: 'each still grows by what it lacks' },
  { running: [100, 200, 300], available: 1099, starts: false, why: 'each still grows by what it lacks' },
])('beside $running MB, with $available MB: $starts, as $why', ({ running, available, starts }) => {
  const state = {
    runningBytes: running.map((used) => used * MB),
    availableBytes: available * MB,
    expectedBytes: 300 * MB,
    reserveBytes: 500 * MB,
  };
  expect(mayStart(state)).toBe(starts);
});

const MEMINFO = { 'proc/meminfo': 'MemTotal: 9000 kB\nMemAvailable:    8000 kB\n' };
const V2 = { 'proc/self/cgroup': '0::/a/b\n' };
const V1 = { 'proc/self/cgroup': '9:name=systemd:/\n4:cpu,memory:/docker/x\n0::/\n' };

it.each([
  { name: 'no groups', files: MEMINFO, kilobytes: 8000 },
  {
    name: 'version 2, limited above us',
    files: {
      ...MEMINFO,
      ...V2,
      'sys/fs/cgroup/a/b/memory.max': 'max\n',
      'sys/fs/cgroup/a/memory.max': `${4000 * 1024}\n`,
      'sys/fs/cgroup/a/memory.current': `${3000 * 1024}\n`,
      'sys/fs/cgroup/a/memory.stat': `anon 5\ninactive_file ${1000 * 1024}\n`,
    },
    kilobytes: 2000,
  },
  {
    name: 'version 1, whose path is one of outside',
    files: {
      ...MEMINFO,
      ...V1,
      'sys/fs/cgroup/memory/memory.limit_in_bytes': `${4000 * 1024}\n`,
      'sys/fs/cgroup/memory/memory.usage_in_bytes': `${1000 * 1024}\n`,
      'sys/fs/cgroup/memory/memory.stat': 'inactive_file 7\ntotal_inactive_file 0\n',
    },
    kilobytes: 3000,
  },
  {
    name: 'a limit above what the machine has left',
    files: { ...MEMINFO, ...V2, 'sys/fs/cgroup/memory.max': '99999999999\n', 'sys/fs/cgroup/memory.current': '5\n' },
    kilobytes: 8000,
  },
])('what is available: $name', async ({ files, kilobytes }) => {
  const root = await mkdtemp(join(tmpdir(), 'stillroom-memory-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    expect(await availableBytes(root)).toBe(kilobytes * 1024);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
