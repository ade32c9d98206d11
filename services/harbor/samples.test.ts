import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ForeignResult, TrialCrashed } from './errors.ts';
import { readTrialFiles } from './trial-files.ts';
import { readTrial, type TrialOutcome } from './trial-result.ts';

/** Trial folders that real harbor 0.25 jobs left, byte for byte: each is read as what it was. */

const SAMPLES = resolve(import.meta.dirname, '../../test/fixtures/harbor');
const outcomeOf = async (folder: string) => readTrial(await readTrialFiles(join(SAMPLES, folder)), { rewardKey: 'reward', maxTurns: 20 });

type Expected = Partial<TrialOutcome> & { readonly calls?: number };
const solved = { reward: 1, passed: true, executed: true, infraFailed: false, fault: null, exceptionType: null, retry: 'never' } as const;
const failed = { ...solved, reward: 0, passed: false } as const;
const infra = { reward: null, passed: false, executed: false, infraFailed: true } as const;

const SAID: Readonly<Record<string, Expected>> = {
  'job-oracle-nop/hello-file__QC5ewNT': { ...solved, calls: 0, stopReason: null },
  'job-oracle-nop/hello-file__jyZ9vmL': { ...failed, calls: 0, stopReason: null },
  'job-oracle-nop/sum-numbers__WmhaptA': { ...solved, rewards: { reward: 1, format: 0.5 } },
  'job-oracle-nop/sum-numbers__xwdkDEi': { ...failed, rewards: { reward: 0, format: 0.5 } },
  'job-terminus-2/hello-file__2PWNPnH': { ...solved, calls: 3, stopReason: 'submitted' },
  // Three calls were made: harbor does not record one whose answer was cut off.
  'job-terminus-2/hello-file__JKmpYWn': { ...failed, calls: 2, stopReason: 'submitted' },
  'job-terminus-2/hello-file__zjTwSbf': {
    ...solved,
    calls: 2,
    fault: 'budget',
    exceptionType: 'AgentTimeoutError',
    stopReason: 'budget',
  },
  'job-terminus-2/no-reward__CXzXnZM': {
    ...infra,
    calls: 3,
    fault: 'grader',
    exceptionType: 'RewardFileNotFoundError',
    retry: 'never',
    stopReason: 'submitted',
  },
  'job-terminus-2/no-reward__H9VtfFC': { ...infra, calls: 2, fault: 'grader', exceptionType: 'RewardFileNotFoundError', retry: 'never' },
  'job-terminus-2/no-reward__obW6JE5': {
    ...infra,
    calls: 2,
    fault: 'budget',
    exceptionType: 'AgentTimeoutError',
    retry: 'again',
    stopReason: 'budget',
  },
  'misc/trial-cancelled': { ...infra, fault: 'us', exceptionType: 'CancelledError', retry: 'again' },
  'misc/trial-custom-agent': { ...solved, calls: 2, agentTurns: 2 },
  'misc/trial-environment-start-failed': {
    ...infra,
    calls: 0,
    fault: 'sandbox',
    exceptionType: 'RuntimeError',
    retry: 'again',
    infraReason: expect.stringMatching(/^RuntimeError: sandbox start failed on purpose; /) as unknown as string,
  },
};

it.each(Object.entries(SAID))('%s', async (folder, { calls, ...expected }) => {
  const outcome = await outcomeOf(folder);
  expect(outcome).toMatchObject(expected);
  expect(outcome.rollout.problem).toBeNull();
  if (calls !== undefined) expect(outcome.rollout.turns).toHaveLength(calls);
});

it('they are all the samples that have a result', () => {
  const folders = readdirSync(SAMPLES, { recursive: true, encoding: 'utf8' }).filter((path) => /^[^/]+\/[^/]+\/result\.json$/.test(path));
  expect(folders.map((path) => path.replace('/result.json', '')).sort()).toEqual(Object.keys(SAID).sort());
});

it('a trial that was killed left no result, and has crashed', async () => {
  await expect(outcomeOf('misc/trial-killed-no-result')).rejects.toThrow(TrialCrashed);
  await expect(outcomeOf('misc/trial-killed-no-result')).rejects.toThrow(/the trial left no result/);
});

describe('the result of a job is no trial', () => {
  it.each(['job-oracle-nop/result.json', 'job-terminus-2/result.json', 'misc/job-result-after-resume.json'])('%s', (file) => {
    const result = readFileSync(join(SAMPLES, file), 'utf8');
    const reading = () => readTrial({ result, testReport: null, trajectory: null }, { rewardKey: 'reward' });
    expect(reading).toThrow(ForeignResult);
    expect(reading).toThrow(/the result of a job/);
  });
});
