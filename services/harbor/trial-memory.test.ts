import { expect, it } from 'vitest';
import { TrialMemory } from './trial-memory.ts';

const MB = 2 ** 20;

/** A machine of so much memory, of which trials take what they use. */
function machine(totalMb: number, recheckMs = 60_000) {
  const state = { freeMb: totalMb };
  const available = async () => state.freeMb * MB;
  return { state, memory: new TrialMemory({ reserveBytes: 100 * MB, priorBytes: 300 * MB, available, recheckMs }) };
}

/** Long enough for every look that is under way. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

function ask(memory: TrialMemory, order: string[], name: string, signal?: AbortSignal) {
  const turn = memory.turn(signal);
  turn.begun.then(
    () => order.push(name),
    () => order.push(`not ${name}`),
  );
  return turn;
}

it('trials begin in the order in which they asked, as the ends of others leave room, and never none', async () => {
  const { memory } = machine(750);
  const order: string[] = [];
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ask(memory, order, name));
  await settled();
  expect(order).toEqual(['a', 'b']);
  expect(c?.shortage()).toMatchObject({ availableBytes: 750 * MB, neededBytes: 1000 * MB });
  expect(a?.shortage()).toBeNull();
  b?.end();
  await settled();
  expect(order).toEqual(['a', 'b', 'c']);
  a?.end();
  c?.end();
  await settled();
  expect(order).toEqual(['a', 'b', 'c', 'd']);
  d?.end();
});

it('with no memory at all, one runs at a time', async () => {
  const { memory } = machine(0);
  const order: string[] = [];
  const turns = ['a', 'b', 'c'].map((name) => ask(memory, order, name));
  for (const [done, turn] of turns.entries()) {
    await settled();
    expect(order).toHaveLength(done + 1);
    turn.end();
  }
});

it('one that is aborted while it waits makes way, and gives back nothing', async () => {
  const { memory } = machine(450);
  const order: string[] = [];
  const a = ask(memory, order, 'a');
  const abort = new AbortController();
  const b = ask(memory, order, 'b', abort.signal);
  const c = ask(memory, order, 'c');
  await settled();
  abort.abort(new Error('enough'));
  await expect(b.begun).rejects.toThrow('enough');
  b.end();
  await settled();
  expect(order).toEqual(['a', 'not b']);
  a.end();
  await settled();
  expect(order).toEqual(['a', 'not b', 'c']);
  c.end();
});

it('memory that other programs give back is seen without any trial ending', async () => {
  const { state, memory } = machine(450, 10);
  const order: string[] = [];
  const turns = ['a', 'b'].map((name) => ask(memory, order, name));
  await settled();
  expect(order).toEqual(['a']);
  state.freeMb = 5000;
  await turns[1]?.begun;
  for (const turn of turns) turn.end();
});

it('what trials were seen to use takes the place of the first guess', async () => {
  const { memory } = machine(500);
  for (let i = 0; i < 5; i++) {
    const turn = memory.turn();
    await turn.begun;
    for (const used of [20, 50 + i, 30]) turn.used(used * MB);
    turn.end();
  }
  expect(memory.expectedBytes).toBe(54 * MB);
  const order: string[] = [];
  const turns = Array.from({ length: 9 }, (_, i) => ask(memory, order, `${i}`));
  await settled();
  expect(order).toHaveLength(7); // 100 in reserve, 54 for each
  for (const turn of turns) turn.end();
});
