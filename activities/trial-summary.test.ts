import { describe, expect, it } from 'vitest';
import { parseRunConfig, type RunConfig } from '../core/config/index.ts';
import type { TrialId } from '../core/ids.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { FencedLog } from '../services/blobs/fenced-log.ts';
import { TrialRecorder } from '../services/gateway/record.ts';
import { PaidCalls } from './paid-calls.ts';
import type { RunRecord } from './run-records.ts';
import { MemoryObjects } from './testing/crashing-store.ts';
import { notRun, summarize } from './trial-summary.ts';

function configOf(more = ''): RunConfig {
  const parsed = parseRunConfig(`student.base_model = "s"\nteacher.model = "t"\nharbor.job_template = "j"\n${more}`, 'run.toml');
  if (!parsed.ok) throw new Error('the config of this test is wrong');
  return parsed.config;
}
const recordOf = (config: RunConfig) => ({ runId: 'run', config }) as unknown as RunRecord;
const SPEC = { trialId: 'trial' as TrialId, who: 'student', task: { id: 'a' } } as unknown as TrialSpec;
const OUTCOME = { ...notRun('', ''), reward: 1, executed: true, passed: true, stopReason: 'its own word' };

async function summaryOf(seen: TrialRecorder, config = configOf()) {
  const calls = await PaidCalls.open(new FencedLog(new MemoryObjects(), 'trial/'), { execution: 'e', attempt: 1 });
  const blobs = { of: () => ({ put: async () => 'blob' }) } as unknown as BlobStore;
  return summarize(recordOf(config), SPEC, OUTCOME, seen.snapshot(), calls, blobs);
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

describe('with compaction, an overflow', () => {
  const compacting = configOf('rollout.compaction = true\n');
  const call = (callIndex: number) =>
    [
      { callIndex, prompt: Int32Array.of(1), sampled: Int32Array.of(2), logprobs: Float64Array.of(-1), stop: 'stop', sampler: 's' },
      { parentCall: null, cause: null, detail: null, lookAlikes: 0 },
      { cachedPromptTokens: 0, maskedTokens: 0, unreadableCalls: false },
    ] as const;

  it('that calls followed is counted, and not how the trial ended', async () => {
    const seen = new TrialRecorder();
    seen.add(...call(0));
    seen.overflowed();
    seen.add(...call(1));
    expect(await summaryOf(seen, compacting)).toMatchObject({ stopReason: 'its own word', overflow: true });
    expect(await summaryOf(seen)).toMatchObject({ stopReason: 'context_overflow', overflow: true });
    seen.limited('call');
    expect(await summaryOf(seen, compacting)).toMatchObject({ stopReason: 'call_limit', overflow: true });
  });

  it('that no call followed ended it, also one before the first call', async () => {
    const seen = new TrialRecorder();
    seen.overflowed();
    expect(await summaryOf(seen, compacting)).toMatchObject({ stopReason: 'context_overflow' });
    seen.add(...call(0));
    seen.overflowed();
    expect(await summaryOf(seen, compacting)).toMatchObject({ stopReason: 'context_overflow' });
  });
});
