import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { drainOnSignals } from './draining.ts';

/** A worker that runs one trial until `end` is called, and a process that notes what is done to it. */
function scene({ drainSeconds = 10, running = 'runTrial × 1' } = {}) {
  const said: string[] = [];
  const handlers = new Map<string, () => void>();
  const ended = Promise.withResolvers<void>();
  const shutdown = () => void said.push('shutdown');
  const begin = drainOnSignals(
    { shutdown, ended: ended.promise, running: () => running, drainSeconds },
    { on: (signal, then) => handlers.set(signal, then), exit: (code) => said.push(`exit ${code}`), tell: (line) => said.push(line) },
  );
  return { said, begin, end: ended.resolve, signal: (name: string) => handlers.get(name)?.() };
}

it('one signal takes no new work and says what it waits for', () => {
  const { said, signal } = scene();
  signal('SIGTERM');
  expect(said).toEqual(['SIGTERM: no new work; up to 10 s for runTrial × 1. Again: end at once', 'shutdown']);
});

it('nothing to wait for is said too', () => {
  const { said, signal } = scene({ running: '' });
  signal('SIGINT');
  expect(said).toEqual(['SIGINT: no new work; nothing runs', 'shutdown']);
});

it.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
])('a second signal, %s, ends at once with %i', (name, code) => {
  const { said, signal } = scene();
  signal('SIGTERM');
  signal(name);
  expect(said.slice(2)).toEqual([`${name} again: ending at once and leaving runTrial × 1`, `exit ${code}`]);
});

it('an orphan drains as by a signal, once, and the next signal ends it', () => {
  const { said, begin, signal } = scene();
  begin('the parent is gone');
  begin('the parent is gone');
  expect(said.filter((line) => line === 'shutdown')).toHaveLength(1);
  signal('SIGTERM');
  expect(said.at(-1)).toBe('exit 143');
});

it('says what is handed over when the time is up, and not when all ended before', async () => {
  const late = scene({ drainSeconds: 0.02 });
  late.signal('SIGTERM');
  const early = scene({ drainSeconds: 0.02 });
  early.signal('SIGTERM');
  early.end();
  await sleep(60);
  expect(late.said.at(-1)).toBe('0.02 s are over: runTrial × 1 told to stop, for other workers to take over');
  expect(early.said.at(-1)).toBe('shutdown');
});
