import { expect, it } from 'vitest';
import { parseRunConfig } from '../core/config/index.ts';
import type { TrialId } from '../core/ids.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { FencedLog } from '../services/blobs/fenced-log.ts';
import { TrialRecorder } from '../services/gateway/record.ts';
import { PaidCalls } from './paid-calls.ts';
import type { RunRecord } from './run-records.ts';
import { MemoryObjects } from './testing/crashing-store.ts';
import { notRun, summarize } from './trial-summary.ts';

const parsed = parseRunConfig('student.base_model = "s"\nteacher.model = "t"\nharbor.job_template = "j"\n', 'run.toml');
if (!parsed.ok) throw new Error('the config of this test is wrong');
const RECORD = { runId: 'run', config: parsed.config } as unknown as RunRecord;
const SPEC = { trialId: 'trial' as TrialId, who: 'student', task: { id: 'a' } } as unknown as TrialSpec;
const OUTCOME = { ...notRun('', ''), reward: 1, executed: true, passed: true, stopReason: 'its own word' };

async function summaryOf(seen: TrialRecorder) {
  const calls = await PaidCalls.open(new FencedLog(new MemoryObjects(), 'trial/'), { execution: 'e', attempt: 1 });
  const blobs = { of: () => ({ put: async () => 'blob' }) } as unknown as BlobStore;
  return summarize(RECORD, SPEC, OUTCOME, seen.snapshot(), calls, blobs);
}

it.each(['usd', 'token', 'call', 'time'] as const)('a trial that the limit of %s ended says so, whatever its agent says', async (by) => {
  const seen = new TrialRecorder();
  expect((await summaryOf(seen)).stopReason).toBe('its own word');
  seen.limited(by);
  expect((await summaryOf(seen)).stopReason).toBe(`${by}_limit`);
});

it('of an overflow it says no other limit: the episode is not trained on', async () => {
  const seen = new TrialRecorder();
  seen.limited('token');
  seen.overflowed();
  expect(await summaryOf(seen)).toMatchObject({ stopReason: 'context_overflow', overflow: true });
});

it('it says why its episode is in pieces, and what could not be read', async () => {
  const seen = new TrialRecorder();
  for (const [callIndex, cause] of (['first', null, 'retry', 'branch', 'retry'] as const).entries()) {
    const span = { callIndex, prompt: Int32Array.of(1), sampled: Int32Array.of(2), logprobs: Float64Array.of(-1) };
    const link = { parentCall: null, cause, detail: null, lookAlikes: 3 };
    const counts = { cachedPromptTokens: 0, maskedTokens: 0, unreadableCalls: callIndex === 1 };
    seen.add({ ...span, stop: 'stop', sampler: 's' }, link, counts);
  }
  expect(await summaryOf(seen)).toMatchObject({ calls: 5, fragmentCauses: { retry: 2, branch: 1 }, unreadableCalls: 1, lookAlikes: 15 });
});
