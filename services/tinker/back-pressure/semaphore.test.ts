import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

/** What has been let through so far, by name. */
function taker(semaphore: Semaphore) {
  const admitted: string[] = [];
  const take = async (name: string, amount: number, signal?: AbortSignal) => {
    const release = await semaphore.acquire(amount, signal);
    admitted.push(name);
    return release;
  };
  return { admitted, take };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a semaphore', () => {
  test('lets through what has room and holds the rest back', async () => {
    const { admitted, take } = taker(new Semaphore(10));
    const release = await take('a', 6);
    await take('b', 4);
    const third = take('c', 1);
    await settled();
    expect(admitted).toEqual(['a', 'b']);
    release();
    await third;
    expect(admitted).toEqual(['a', 'b', 'c']);
  });

  test('a large item is not overtaken', async () => {
    const { admitted, take } = taker(new Semaphore(10));
    const release = await take('a', 6);
    const [large, small] = [take('large', 8), take('small', 1)];
    await settled();
    expect(admitted).toEqual(['a']);
    release();
    await Promise.all([large, small]);
    expect(admitted).toEqual(['a', 'large', 'small']);
  });

  test('an item above the whole capacity passes alone', async () => {
    const { admitted, take } = taker(new Semaphore(10));
    const release = await take('a', 1);
    const oversize = take('oversize', 99);
    const after = take('after', 1);
    await settled();
    expect(admitted).toEqual(['a']);
    release();
    const releaseOversize = await oversize;
    await settled();
    expect(admitted).toEqual(['a', 'oversize']);
    releaseOversize();
    await after;
    expect(admitted).toEqual(['a', 'oversize', 'after']);
  });

  test('an aborted waiter leaves the queue and makes way for those behind it', async () => {
    const semaphore = new Semaphore(10);
    const { admitted, take } = taker(semaphore);
    await take('a', 6);
    const controller = new AbortController();
    const large = take('large', 8, controller.signal);
    const small = take('small', 3);
    await settled();
    expect(admitted).toEqual(['a']);
    controller.abort(new Error('no longer wanted'));
    await expect(large).rejects.toThrow('no longer wanted');
    await small;
    expect(admitted).toEqual(['a', 'small']);
    await take('next', 1);
  });

  test('an aborted signal takes nothing', async () => {
    const semaphore = new Semaphore(10);
    await expect(semaphore.acquire(1, AbortSignal.abort(new Error('no')))).rejects.toThrow('no');
    const { admitted, take } = taker(semaphore);
    await take('all', 10);
    expect(admitted).toEqual(['all']);
  });

  test('giving back twice gives back once', async () => {
    const semaphore = new Semaphore(10);
    const { admitted, take } = taker(semaphore);
    const release = await semaphore.acquire(4, undefined);
    await take('five', 5);
    release();
    release();
    take('six', 6).catch(() => {});
    await settled();
    expect(admitted).toEqual(['five']);
  });

  test('never holds more than its capacity but for one item alone, and ends empty', async () => {
    const item = fc.record({ amount: fc.integer({ min: 1, max: 15 }), isAborted: fc.boolean(), steps: fc.integer({ min: 0, max: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(item, { maxLength: 20 }), async (items) => {
        const semaphore = new Semaphore(10);
        const held: number[] = [];
        const work = items.map(async ({ amount, isAborted, steps }) => {
          const controller = new AbortController();
          const taking = semaphore.acquire(amount, controller.signal);
          if (isAborted) controller.abort(new Error('aborted'));
          const release = await taking.catch(() => null);
          if (release === null) return;
          held.push(amount);
          expect(held.length === 1 || held.reduce((sum, amount) => sum + amount) <= 10).toBe(true);
          for (let i = 0; i < steps; i++) await Promise.resolve();
          held.splice(held.indexOf(amount), 1);
          release();
        });
        await Promise.all(work);
        const release = await semaphore.acquire(10, AbortSignal.timeout(1000));
        release();
      }),
    );
  });
});
