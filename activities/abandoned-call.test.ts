import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TrialId } from '../core/ids.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import { FencedLog } from '../services/blobs/fenced-log.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { type Gateway, rendererFor, type SampleRequest, type SampleResult, startGateway } from '../services/gateway/index.ts';
import { PaidCalls } from './paid-calls.ts';
import { recordedSampler } from './recorded-sampler.ts';
import type { RunRecord } from './run-records.ts';
import { paidIn } from './trial-summary.ts';

/** Samples that reach no agent, or not as a whole: nobody was killed, so every token is known, and paid for. */

const TRIAL = 'p-s0001-000-0' as TrialId;
const RECORD = { config: { pricing: { student_prefill: 1, student_sample: 1 }, sampling: { max_tokens: 28 } } } as unknown as RunRecord;
const SPEC = { trialId: TRIAL, who: 'student' } as unknown as TrialSpec;
const SAID: SampleResult = {
  tokens: Int32Array.from(Buffer.from('ls\n')),
  logprobs: Float32Array.of(-1, -1, -1),
  stop: 'stop',
  promptCacheHitTokens: 0,
};

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ host: '127.0.0.1', port: 0 });
});
afterAll(() => gateway.close());

/** A trial whose one call the service holds until `answer`, or until it is broken off. */
async function trialInFlight(request: object = {}) {
  const [answered, asked] = [Promise.withResolvers<SampleResult>(), Promise.withResolvers<SampleRequest>()];
  const sample = (sampling: SampleRequest) => {
    asked.resolve(sampling);
    const { signal } = sampling;
    const brokenOff = new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    return Promise.race([answered.promise, brokenOff]);
  };
  const calls = await PaidCalls.open(new FencedLog(new MemoryObjects(), 'w/'), { execution: 'e', attempt: 1 });
  const [drain, cancelled] = [new AbortController().signal, new AbortController()];
  const options = { calls, trialId: TRIAL, who: 'student', model: 'm', isUsable: () => true, drain, signal: cancelled.signal } as const;
  const session = gateway.open({
    trialId: TRIAL,
    modelName: 'tiny',
    sampler: recordedSampler({ version: 'step-0001', sample }, options),
    renderer: rendererFor({ model: 'stillroom/tiny-student', name: 'stillroom_tiny' }),
    contextLimitTokens: 192,
    maxTokensPerCall: 28,
    temperature: 1,
  });
  const leaving = new AbortController();
  const post = fetch(`${session.apiBase}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${session.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'files sun\ntask say ls' }], ...request }),
    signal: leaving.signal,
  });
  const ended = post.then(
    () => 'answered',
    () => 'gone',
  );
  const { prompt } = await asked.promise;
  const books = async () => {
    await calls.quiet();
    return paidIn(RECORD, SPEC, session.record(), calls);
  };
  const answer = () => answered.resolve(SAID);
  return { prompt, session, ended, books, answer, leave: () => leaving.abort(), cancel: () => cancelled.abort(new Error('cancelled')) };
}

it.each(['before the trial ends', 'with the trial'])('%s: the sample is waited for and booked as what it was', async (when) => {
  const { prompt, session, ended, books, answer, leave } = await trialInFlight();
  if (when === 'before the trial ends') {
    leave();
    expect(await ended).toBe('gone');
  }
  let isClosed = false;
  const closed = session[Symbol.asyncDispose]().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(isClosed).toBe(false);
  answer();
  await closed;
  expect(session.record()).toMatchObject({ calls: 0, failure: null, wasted: { calls: 1 } });
  expect(await books()).toMatchObject({
    sent: { promptTokens: prompt.length, sampledTokens: 3 },
    lost: [],
    meters: { student_prefill: prompt.length + 3, student_sample: 3 },
  });
});

it('a trial that is cancelled breaks it off: the call is lost, and booked at the most that it could take', async () => {
  const { prompt, session, books, cancel } = await trialInFlight();
  cancel();
  await session[Symbol.asyncDispose]();
  expect(await books()).toMatchObject({
    sent: { promptTokens: 0, sampledTokens: 0 },
    lost: [{ kind: 'sample', of: TRIAL, callIndex: 0, promptTokens: prompt.length, sampledTokens: 28 }],
    meters: { student_sample: 28 },
  });
});

it('what was sampled behind a stop string is no part of the turn, and booked with the rest', async () => {
  const { prompt, session, ended, books, answer } = await trialInFlight({ stop: ['ls'] });
  answer();
  expect(await ended).toBe('answered');
  await session[Symbol.asyncDispose]();
  expect(session.record()).toMatchObject({ calls: 1, sampledTokens: 2, wasted: { calls: 0, sampledTokens: 1 } });
  expect(await books()).toMatchObject({
    sent: { promptTokens: prompt.length, sampledTokens: 3 },
    lost: [],
    meters: { student_prefill: prompt.length + 3, student_sample: 3 },
  });
});
