import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TrialId } from '../core/ids.ts';
import { at } from '../core/lists.ts';
import { seededRandom, seedFromName } from '../core/random/seeded.ts';
import { lostIn, sentIn } from '../core/recordings/books.ts';
import { isAnswered } from '../core/recordings/paid-call.ts';
import { FencedLog, StaleAttempt } from '../services/blobs/fenced-log.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import type { SampleResult, TokenSampler } from '../services/gateway/index.ts';
import { PaidCalls } from './paid-calls.ts';
import { recordedSampler } from './recorded-sampler.ts';

const MAX_TOKENS = 6;

type Span = { readonly prompt: readonly number[]; readonly sampled: readonly number[]; readonly logprobs: readonly number[] };

/** A service that samples by prompt and seed, and counts what it was asked and what it answered. */
class Service {
  readonly counted: { readonly promptTokens: number; readonly sampledTokens: number }[] = [];

  sampler(beforeAnswer: () => void): TokenSampler {
    return {
      version: 'step-0001',
      sample: async ({ prompt, seed }) => {
        const result = drawn(prompt, seed ?? 0);
        this.counted.push({ promptTokens: prompt.length, sampledTokens: result.tokens.length });
        await null;
        beforeAnswer();
        return result;
      },
    };
  }
}

function drawn(prompt: Int32Array, seed: number): SampleResult {
  const random = seededRandom(seedFromName(`${prompt.join()} ${seed}`));
  const tokens = Int32Array.from({ length: 1 + random.below(MAX_TOKENS) }, () => random.below(128));
  const logprobs = Float32Array.from(tokens, () => (random.below(20) === 0 ? Number.NaN : -random.below(1000) / 333));
  return { tokens, logprobs, stop: 'stop', promptCacheHitTokens: 0 };
}

class Killed extends Error {}

/** The store of one attempt: it dies at its `left`-th write, after it or before it. */
function mortal(objects: MemoryObjects, left: number, afterwards: boolean): ObjectStore {
  let writes = 0;
  const create: ObjectStore['create'] = async (key, bytes) => {
    writes++;
    if (writes > left || (writes === left && !afterwards)) throw new Killed();
    const created = await objects.create(key, bytes);
    if (writes === left) throw new Killed();
    return created;
  };
  return { ...objects, create };
}

type Agent = { readonly name: string; readonly turns: number; readonly conversations: number };

/** What an agent sees between its calls: a function of what was sampled, and of the attempt where it is not deterministic. */
function observation(sampled: Int32Array, flaw: string): number[] {
  const random = seededRandom(seedFromName(`${sampled.join()} ${flaw}`));
  return Array.from({ length: random.below(4) }, () => random.below(128));
}

/** Plays the agent to its end. Conversations run side by side, and their calls are in flight together. */
async function play(sampler: TokenSampler, { name, turns, conversations }: Agent, flaw: (turn: number) => string): Promise<Span[]> {
  const converse = async (which: number): Promise<Span[]> => {
    const spans: Span[] = [];
    let prompt = [...Buffer.from(name), which];
    for (let turn = 0; turn < turns; turn++) {
      const request = { prompt: Int32Array.from(prompt), maxTokens: MAX_TOKENS, temperature: 1, stopTokens: [10] };
      const { tokens, logprobs } = await sampler.sample(request);
      spans.push({ prompt, sampled: [...tokens], logprobs: [...logprobs] });
      prompt = [...prompt, ...tokens, ...observation(tokens, flaw(turn))];
    }
    return spans;
  };
  return (await Promise.all(Array.from({ length: conversations }, (_, which) => converse(which)))).flat();
}

const trialId = (name: string) => name as TrialId;
const never = new AbortController().signal;

async function attemptAt(trial: string, objects: ObjectStore, number: number, sampler: TokenSampler) {
  const calls = await PaidCalls.open(new FencedLog(objects, `runs/r/calls/${trial}/sample/`), { execution: 'e', attempt: number });
  const options = {
    calls,
    trialId: trialId(trial),
    who: 'student',
    model: 'm',
    isUsable: () => true,
    drain: never,
    signal: never,
  } as const;
  return { calls, sampler: recordedSampler(sampler, options) };
}

type Kill = { readonly write: number; readonly afterwards: boolean };

/** Attempts that die one after the other, and the last, which does not. */
async function disturbed(trial: string, agent: Agent, kills: readonly Kill[], flaw: (attempt: number, turn: number) => string) {
  const [objects, service] = [new MemoryObjects(), new Service()];
  for (const [number, { write, afterwards }] of kills.entries()) {
    const own = mortal(objects, write, afterwards);
    const dies = attemptAt(
      trial,
      own,
      number + 1,
      service.sampler(() => {}),
    ).then(({ sampler }) => play(sampler, agent, (turn) => flaw(number + 1, turn)));
    await dies.catch((error) => {
      if (!(error instanceof Killed)) throw error;
    });
  }
  const last = kills.length + 1;
  const { calls, sampler } = await attemptAt(
    trial,
    objects,
    last,
    service.sampler(() => {}),
  );
  return { spans: await play(sampler, agent, (turn) => flaw(last, turn)), calls, service };
}

const undisturbed = async (trial: string, agent: Agent) => (await disturbed(trial, agent, [], () => '')).spans;

const agents = fc.record({
  name: fc.string({ maxLength: 5 }),
  turns: fc.integer({ min: 1, max: 6 }),
  conversations: fc.constantFrom(1, 1, 3),
});
const kills = fc.array(fc.record({ write: fc.integer({ min: 1, max: 16 }), afterwards: fc.boolean() }), { maxLength: 4 });
const total = (counts: readonly { readonly promptTokens: number; readonly sampledTokens: number }[]) =>
  counts.reduce((sum, { promptTokens, sampledTokens }) => sum + promptTokens + sampledTokens, 0);

describe('a trial whose attempts die at any moment', () => {
  it('ends as one that was left alone, to the last bit, when its agent is deterministic', () =>
    fc.assert(
      fc.asyncProperty(agents, kills, async (agent, moments) => {
        // One conversation after the other has one order of calls, and so the same seeds.
        const alone = { ...agent, conversations: 1 };
        expect((await disturbed('t', alone, moments, () => '')).spans).toEqual(await undisturbed('t', alone));
      }),
    ));

  it('loses no more than the calls in flight, and every other token is in the books', () =>
    fc.assert(
      fc.asyncProperty(agents, kills, fc.integer({ min: 0, max: 6 }), async (agent, moments, flawedTurn) => {
        const flaw = (attempt: number, turn: number) => (turn === flawedTurn ? `${attempt}` : '');
        const { calls, service, spans } = await disturbed('t', agent, moments, flaw);
        const lost = lostIn(calls.calls, 't');
        expect(lost.length).toBeLessThanOrEqual(moments.length * agent.conversations);
        const answered = calls.calls.filter(isAnswered);
        // An intent whose call was not sent any more is lost too: nobody can tell.
        expect(service.counted.length - answered.length).toBeLessThanOrEqual(lost.length);
        const { promptTokens, sampledTokens } = sentIn(calls.calls);
        const inBooks = promptTokens + sampledTokens;
        expect(total(service.counted) - inBooks).toBeLessThanOrEqual(total(lost));
        expect(total(service.counted)).toBeGreaterThanOrEqual(inBooks);
        // What the agent was given is in the books once, and the rest of them is what dead attempts bought in vain.
        const handed = answered.filter((call) => calls.wasHanded(call));
        expect(handed).toHaveLength(spans.length);
        expect(answered.filter((call) => !calls.isInherited(call) && !calls.wasHanded(call))).toEqual([]);
      }),
    ));

  it('with conversations side by side, is answered from the book as far as it goes', () =>
    fc.assert(
      fc.asyncProperty(agents, fc.integer({ min: 2, max: 16 }), async (agent, write) => {
        const { calls, service } = await disturbed('t', agent, [{ write, afterwards: true }], () => '');
        const answered = calls.calls.filter(isAnswered);
        expect(answered.filter((call) => calls.isInherited(call) && !calls.wasHanded(call))).toEqual([]);
        expect(service.counted.length).toBeLessThanOrEqual(agent.turns * agent.conversations + agent.conversations);
      }),
    ));

  it('shares nothing with a sibling, nor with a retry under another id', async () => {
    const agent = { name: 'task', turns: 4, conversations: 1 };
    const ends = await Promise.all(['t-0', 't-1', 't-0-r1'].map((trial) => undisturbed(trial, agent)));
    expect(new Set(ends.map((spans) => JSON.stringify(spans))).size).toBe(3);
    const again = await disturbed('t-1', agent, [{ write: 6, afterwards: true }], () => '');
    expect(again.spans).toEqual(ends[1]);
  });
});

describe('an attempt whose work was taken over', () => {
  it('is refused the answer to the call that it had in flight, and every later one', async () => {
    const [objects, service] = [new MemoryObjects(), new Service()];
    const gate = Promise.withResolvers<void>();
    const slow: TokenSampler = {
      version: 'step-0001',
      sample: async (request) => gate.promise.then(() => drawn(request.prompt, request.seed ?? 0)),
    };
    const zombie = await attemptAt('t', objects, 1, slow);
    const request = { prompt: Int32Array.of(1), maxTokens: MAX_TOKENS, temperature: 1, stopTokens: [10] };
    const late = zombie.sampler.sample(request);
    late.catch(() => {});
    await zombie.calls.call({ ...ORDER, key: 'other' }, async () => ANSWER);
    const next = await attemptAt(
      't',
      objects,
      2,
      service.sampler(() => {}),
    );
    const { tokens } = await next.sampler.sample(request);
    gate.resolve();
    await expect(late).rejects.toBeInstanceOf(StaleAttempt);
    await expect(zombie.sampler.sample(request)).rejects.toBeInstanceOf(StaleAttempt);
    await expect(zombie.calls.finish({})).rejects.toBeInstanceOf(StaleAttempt);
    expect(lostIn(next.calls.calls, 't')).toHaveLength(1);
    expect(
      (
        await (
          await attemptAt(
            't',
            objects,
            3,
            service.sampler(() => {}),
          )
        ).sampler.sample(request)
      ).tokens,
    ).toEqual(tokens);
  });

  it('cannot take it back, but another execution can', async () => {
    const objects = new MemoryObjects();
    const open = (execution: string, attempt: number) => PaidCalls.open(new FencedLog(objects, 'w/'), { execution, attempt });
    await open('e', 2);
    await expect(open('e', 1)).rejects.toBeInstanceOf(StaleAttempt);
    expect((await open('later', 1)).epoch).toBe(2);
  });
});

const ORDER = { kind: 'sample', who: 'student', model: 'm', promptTokens: 1, mostSampledTokens: 1 } as const;
const ANSWER = { sampledTokens: 1, cachedTokens: 0, resubmissions: 0, usable: true, detail: {}, columns: [] } as const;

it('a finished trial is known as such to the next attempt', async () => {
  const objects = new MemoryObjects();
  const first = await PaidCalls.open(new FencedLog(objects, 'w/'), { execution: 'e', attempt: 1 });
  expect(first.finished).toBeNull();
  await first.finish({ reward: 1 });
  expect((await PaidCalls.open(new FencedLog(objects, 'w/'), { execution: 'e', attempt: 2 })).finished?.result).toEqual({ reward: 1 });
});

it('waits until nothing is on its way, and a call that comes after the worker was told to end does not begin', async () => {
  const drain = new AbortController();
  const objects = new MemoryObjects();
  const calls = await PaidCalls.open(new FencedLog(objects, 'w/'), { execution: 'e', attempt: 1 });
  const answered = Promise.withResolvers<SampleResult>();
  const asked: number[] = [];
  const inner: TokenSampler = {
    version: 'v',
    sample: ({ seed = -1 }) => {
      asked.push(seed);
      return answered.promise;
    },
  };
  const sampler = recordedSampler(inner, {
    calls,
    trialId: trialId('t'),
    who: 'student',
    model: 'm',
    isUsable: () => true,
    drain: drain.signal,
    signal: never,
  });
  const request = { prompt: Int32Array.of(1), maxTokens: MAX_TOKENS, temperature: 1, stopTokens: [10] };
  const running = sampler.sample(request);
  drain.abort();
  const ended = new AbortController();
  const held = sampler.sample({ ...request, signal: ended.signal });
  held.catch(() => {});
  let isQuiet = false;
  const quiet = calls.quiet().then(() => {
    isQuiet = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([isQuiet, asked.length]).toEqual([false, 1]);
  answered.resolve(drawn(request.prompt, at(asked, 0)));
  await Promise.all([running, quiet]);
  expect(calls.calls.filter(isAnswered)).toHaveLength(1);
  ended.abort(new Error('the trial is over'));
  await expect(held).rejects.toThrow('the trial is over');
});
