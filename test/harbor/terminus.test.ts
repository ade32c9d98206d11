import { execFileSync } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SamplerUnavailable, SamplerUnpaid, type TrialRecord } from '../../services/gateway/index.ts';
import { tinyAsciiRenderer } from '../../services/gateway/renderers/tiny-ascii.ts';
import { says, scriptedSampler, textOf } from '../../services/gateway/testing/scripted-sampler.ts';
import type { TrialRun } from '../../services/harbor/index.ts';
import { TerminusSetting, TMUX_IS_HERE, terminusTurn } from './terminus-setting.ts';

let terminus: TerminusSetting;
beforeAll(async () => {
  terminus = await TerminusSetting.make();
});
afterAll(() => terminus?.[Symbol.asyncDispose]());

const renderer = tinyAsciiRenderer();
const turn = (...args: Parameters<typeof terminusTurn>) => says(`${terminusTurn(...args)}\n`);
const [look, copy, done] = [turn(['ls\n']), turn(['cp sun map\n']), turn([], { done: true })];

test('a sandbox without tmux is told by name, and nothing is asked of the model', async () => {
  const sampler = scriptedSampler(look);
  const bin = join(terminus.setting.dir, 'bin');
  await mkdir(bin);
  await symlink(execFileSync('sh', ['-c', 'command -v bash'], { encoding: 'utf8' }).trim(), join(bin, 'bash'));
  const environment = { persistent_env: { PATH: bin } };
  const run = await terminus.play({ sampler, renderer, environment });
  expect(run).toMatchObject({ infraFailed: true, exceptionMessage: expect.stringContaining('tmux') });
  expect(sampler.requests).toEqual([]);
});

if (TMUX_IS_HERE) {
  test('a solved task: every prompt continues the one before, and harbor recorded what the gateway did', async () => {
    const { session, ...run } = await terminus.play({ sampler: scriptedSampler(look, copy, done, done), renderer });
    expect(run).toMatchObject({ reward: 1, executed: true, exceptionType: null, stopReason: 'submitted' });
    const record = session.record();
    expect(record).toMatchObject({ calls: 4, fragments: { first: 1 }, failure: null, overflow: false });
    expect(record.links.map(({ parentCall }) => parentCall)).toEqual([null, 0, 1, 2]);
    expect(saidIn(record)).toEqual([look, copy, done, done].map(({ tokens }) => textOf(tokens)));
    expect(textOf(record.spans[1]?.prompt ?? new Int32Array())).toMatch(/task copy sun to map.*ls\nsun\n/s);
    expect(harborsTurns(run)).toEqual(gatewaysTurns(record));
  });

  test('the prompt of a document stands before its task', async () => {
    const document = { runtime: 'terminus-2', kwargs: { parser_name: 'json' }, env: {}, prompt: 'Use {braces} sparingly.\n' } as const;
    const sampler = scriptedSampler(copy, done, done);
    const { session, ...run } = await terminus.play({ sampler, renderer, document });
    expect(run).toMatchObject({ reward: 1, stopReason: 'submitted' });
    const [first] = session.record().spans;
    expect(textOf(first?.prompt ?? new Int32Array())).toMatch(/Use \{braces\} sparingly\.\n\nfiles sun\ntask copy sun to map/);
  });

  test('an answer that it cannot read is followed by a message, in the same fragment', async () => {
    const sampler = scriptedSampler(says('no JSON\n'), copy, done, done);
    const { session, ...run } = await terminus.play({ sampler, renderer });
    expect(run).toMatchObject({ reward: 1, stopReason: 'submitted' });
    expect(session.record()).toMatchObject({ calls: 4, fragments: { first: 1 } });
    expect(harborsTurns(run)).toEqual(gatewaysTurns(session.record()));
  });

  test('an answer that is cut off is recorded and continued, though harbor leaves it out', async () => {
    const sampler = scriptedSampler(says('{"analysis": "so m'), copy, done, done);
    const { session, ...run } = await terminus.play({ sampler, renderer });
    expect(run).toMatchObject({ reward: 1, stopReason: 'submitted' });
    expect(session.record()).toMatchObject({ calls: 4, lengthStops: 1, fragments: { first: 1 } });
    expect(harborsTurns(run)).toEqual(gatewaysTurns(session.record()).slice(1));
  });

  describe('a context that is full', () => {
    // Fills the screen, which is sent back.
    const flood = turn(['cp sun map; seq -s " " 3000\n']);

    test('ends the episode, which is graded as it stands', async () => {
      const sampler = scriptedSampler(flood, look);
      const { session, ...run } = await terminus.play({ sampler, renderer, ...context(12_000) });
      expect(run).toMatchObject({ reward: 1, executed: true, exceptionType: null, stopReason: 'overflow' });
      expect(session.record()).toMatchObject({ calls: 1, overflow: true, overflowAfterCalls: 1, failure: null });
      expect(sampler.requests).toHaveLength(1);
    });

    test('is compacted if wished: the summary continues the conversation, the next agent’s questions and its own are fragments', async () => {
      const [summary, questions, answers] = [says('Copied it.\n'), says('Is it there?\n'), says('Yes.\n')];
      const sampler = scriptedSampler(flood, summary, questions, answers, done, done);
      const { session, ...run } = await terminus.play({ sampler, renderer, ...context(12_000, { compaction: true }) });
      expect(run).toMatchObject({ reward: 1, exceptionType: null, stopReason: 'submitted' });
      const record = session.record();
      expect(record).toMatchObject({ calls: 6, overflow: true, overflowAfterCalls: 1, failure: null });
      expect(saidIn(record)[5]).toBe(textOf(done.tokens));
      expect(record.links.map(({ cause }) => cause)).toEqual(['first', null, 'no_match', null, 'compaction', null]);
    });
  });

  describe.concurrent('a call that fails is sent again, after seconds', () => {
    test('and nothing of the failure is recorded if nothing was sampled', async () => {
      const sampler = scriptedSampler(copy, new SamplerUnavailable('gone'), done, done);
      const { session, ...run } = await terminus.play({ sampler, renderer });
      expect(run).toMatchObject({ reward: 1, stopReason: 'submitted' });
      const record = session.record();
      expect(record).toMatchObject({ calls: 3, fragments: { first: 1 }, failure: { kind: 'unavailable', afterCalls: 1 } });
      expect(harborsTurns(run)).toEqual(gatewaysTurns(record));
    });

    test('and is a fragment of its own if its first answer was lost', async () => {
      let lost = false;
      const onCall = ({ callIndex }: { callIndex: number }) => {
        if (callIndex !== 1 || lost) return;
        lost = true;
        throw new Error('the answer is lost');
      };
      const sampler = scriptedSampler(copy, look, done, done);
      const { session, ...run } = await terminus.play({ sampler, renderer, gateway: { onCall } });
      expect(run).toMatchObject({ reward: 1, stopReason: 'submitted' });
      const record = session.record();
      expect(record).toMatchObject({ calls: 4, fragments: { first: 1, retry: 1 } });
      expect(record.links[2]).toMatchObject({ parentCall: 0, cause: 'retry' });
      expect(record.spans[2]?.prompt).toEqual(record.spans[1]?.prompt);
      expect(harborsTurns(run)).toEqual(gatewaysTurns(record).toSpliced(1, 1));
    });
  });

  test('a limit of the trial ends the episode at once, which is graded as it stands', async () => {
    const spendLimit = { limitUsd: 1, mostTokens: ({ spans }: { readonly spans: readonly unknown[] }) => (spans.length < 2 ? 1000 : 0) };
    const limits = { usd_limit: { spendLimit }, call_limit: { maxCalls: 2 } };
    for (const [stopReason, gateway] of Object.entries(limits)) {
      const sampler = scriptedSampler(look, copy);
      const { session, ...run } = await terminus.play({ sampler, renderer, gateway });
      expect(run).toMatchObject({ reward: 1, executed: true, exceptionType: null, stopReason });
      expect(run.timings.agentMs).toBeLessThan(4_000); // one try again would wait so long
      expect(session.record()).toMatchObject({ calls: 2, failure: null });
    }
  });

  test('a model that never ends its answers, which harbor counts as no turns, is ended by the limit of its calls', async () => {
    const sampler = scriptedSampler(...Array.from({ length: 8 }, () => says('{"analysis": "and so on')));
    const { session, ...run } = await terminus.play({ sampler, renderer, agent: { maxTurns: 2 }, gateway: { maxCalls: 6 } });
    expect(run).toMatchObject({ executed: true, exceptionType: null, stopReason: 'call_limit' });
    expect(session.record()).toMatchObject({ calls: 6, lengthStops: 6, callLimited: true, failure: null });
  });

  test('a trial that is suspended ends at once too, but is not graded', async () => {
    const { session, ...run } = await terminus.play({ sampler: scriptedSampler(look, new SamplerUnpaid('the bill is open')), renderer });
    expect(run).toMatchObject({ infraFailed: true, exceptionMessage: expect.stringContaining('trial_suspended') });
    expect(run.timings.agentMs).toBeLessThan(4_000);
    expect(session.record()).toMatchObject({ calls: 1, failure: { kind: 'unpaid', afterCalls: 1 } });
  });

  test('trials play side by side in one process, each with its own key', async () => {
    const plays = Array.from({ length: 4 }, () => terminus.play({ sampler: scriptedSampler(look, copy, done, done), renderer }));
    const runs = await Promise.all(plays);
    expect(runs.map(({ reward }) => reward)).toEqual([1, 1, 1, 1]);
    for (const { session } of runs) expect(session.record()).toMatchObject({ calls: 4, fragments: { first: 1 } });
  });
}

/** Both sides know the limit, as they do when a run is played. */
function context(contextLimitTokens: number, { compaction = false } = {}) {
  return { agent: { contextLimitTokens, compaction }, gateway: { contextLimitTokens } };
}

const saidIn = ({ spans }: TrialRecord) => spans.map(({ sampled }) => textOf(sampled));

const harborsTurns = ({ rollout }: Pick<TrialRun, 'rollout'>) =>
  rollout.turns.map(({ prompt, sampled, logprobs }) => ({ prompt, sampled, logprobs }));

const gatewaysTurns = ({ spans }: TrialRecord) => spans.map(({ prompt, sampled, logprobs }) => ({ prompt, sampled, logprobs }));
