import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TrialId } from '../core/ids.ts';
import { seededRandom, seedFromName } from '../core/random/seeded.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import { FencedLog } from '../services/blobs/fenced-log.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { type Gateway, type GatewaySession, rendererFor, startGateway, type TokenSampler } from '../services/gateway/index.ts';
import { PaidCalls } from './paid-calls.ts';
import { recordedSampler } from './recorded-sampler.ts';
import type { RunRecord } from './run-records.ts';
import { dyingAt } from './testing/crashing-store.ts';
import { trialLimit } from './trial-limit.ts';
import { paidIn } from './trial-summary.ts';

/** A runaway agent whose worker dies again and again: all its attempts together stay within the limit of one trial. */

const TRIAL = 'p-s0001-000-0' as TrialId;
const LIMIT_USD = 0.9;
const MOST_TOKENS = 28;
const config = {
  pricing: { student_prefill: 1000, student_cached_prefill: 100, student_sample: 3000 },
  budget: { max_usd: null, max_usd_per_trial: LIMIT_USD },
  train: { loss: 'importance_sampling', topk: 8 },
  sampling: { max_tokens: MOST_TOKENS },
};
const RECORD = { config } as unknown as RunRecord;
const SPEC = { trialId: TRIAL, who: 'student', trains: false } as unknown as TrialSpec;
const never = new AbortController().signal;

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ host: '127.0.0.1', port: 0 });
});
afterAll(() => gateway.close());

const sampler: TokenSampler = {
  version: 'step-0001',
  sample: async ({ prompt, seed, maxTokens }) => {
    const random = seededRandom(seedFromName(`${prompt.join()} ${seed}`));
    const length = Math.min(maxTokens, 4 + random.below(MOST_TOKENS));
    const tokens = Int32Array.from({ length }, (_, i) => (i === length - 1 && length < maxTokens ? 10 : 97 + random.below(26)));
    const stop = tokens.at(-1) === 10 ? 'stop' : 'length';
    return { tokens, logprobs: new Float32Array(length).fill(-1), stop, promptCacheHitTokens: 0 };
  },
};

/** Talks until it is refused for good. */
async function runaway({ apiBase, apiKey }: GatewaySession): Promise<void> {
  const messages: object[] = [{ role: 'user', content: 'go on' }];
  for (;;) {
    const response = await fetch(`${apiBase}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', messages }),
    });
    if (!response.ok) return;
    const { choices } = (await response.json()) as { choices: readonly { readonly message: object }[] };
    messages.push(choices[0]?.message ?? {}, { role: 'user', content: 'more' });
  }
}

async function attempt(objects: ObjectStore, number: number) {
  const calls = await PaidCalls.open(new FencedLog(objects, 'w/'), { execution: 'e', attempt: number });
  const options = { calls, trialId: TRIAL, who: 'student', model: 'm', isUsable: () => true, drain: never, signal: never } as const;
  await using session = gateway.open({
    trialId: TRIAL,
    modelName: 'tiny',
    sampler: recordedSampler(sampler, options),
    renderer: rendererFor({ name: 'stillroom_tiny' }),
    contextLimitTokens: 4096,
    maxTokensPerCall: MOST_TOKENS,
    temperature: 1,
    ...trialLimit(RECORD.config, SPEC, calls),
  });
  await runaway(session);
  return { calls, record: session.record() };
}

it('whenever its attempts die, it costs no more than its limit, uses it up, and what it had is answered from its book', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.record({ write: fc.nat(30), afterIt: fc.boolean() }), { maxLength: 4 }), async (deaths) => {
      const objects = new MemoryObjects();
      for (const [number, death] of deaths.entries()) await attempt(dyingAt(objects, death), number + 1).catch(() => {});
      const { calls, record } = await attempt(objects, deaths.length + 1);
      const { usd, lost, reboughtTokens } = paidIn(RECORD, SPEC, record, calls);
      // A lost call is booked as if nothing of its prompt was cached; when it was made, the limit had room for what was not.
      const uncachedUsd = (lost.reduce((sum, { promptTokens }) => sum + promptTokens, 0) * (1000 - 100)) / 1e6;
      expect(usd).toBeLessThanOrEqual(LIMIT_USD + uncachedUsd + 1e-9);
      expect(record.usdLimited).toBe(true);
      expect(lost.length).toBeLessThanOrEqual(deaths.length);
      expect(reboughtTokens).toBe(0);
    }),
    { numRuns: 40 },
  ));

it('undisturbed, it uses up its limit but for less than one call', async () => {
  const { calls, record } = await attempt(new MemoryObjects(), 1);
  const { usd } = paidIn(RECORD, SPEC, record, calls);
  expect([usd <= LIMIT_USD, usd > LIMIT_USD - 0.15]).toEqual([true, true]);
});
