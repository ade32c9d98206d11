/**
 * What the tokens of a batch cost in CPU time: from recorded calls to the lists that the training service takes, and to store, read and
 * send them. `npm run bench -- datums`: batches of 16, 32 and 64 episodes of 40 turns × 1,000 tokens, each in a process of its own so
 * that its peak memory is its own; the median of 7 batches after 2 to warm up. Exit 1 when the largest batch misses the goal.
 */
import { spawnSync } from 'node:child_process';
import { TOKENS_PER_TURN, TURNS } from './support/conversations.ts';
import { tableOf } from './support/table.ts';
import { BESIDES, collectGarbage, runBatch, type Stage, TO_WIRE } from './support/token-stages.ts';

const BATCHES = [16, 32, 64];
const GOAL_TOKENS_PER_SECOND = 16e6;
const WARM_UP = 2;
const MEASURED = 7;

type Measured = {
  readonly episodes: number;
  readonly datumTokens: number;
  /** Medians over the batches; that of 'all to wire lists' is of the sums. */
  readonly seconds: Record<Stage | 'all to wire lists', number>;
  readonly peakMegabytes: number;
};

export async function main(): Promise<void> {
  const only = process.argv[2];
  if (only !== undefined) {
    console.log(JSON.stringify(measure(Number(only))));
    return;
  }
  const results = BATCHES.map(inOwnProcess);
  print(results);
  const reached = perSecond(results.at(-1) as Measured, 'all to wire lists');
  const goal = `the goal is ${millions(GOAL_TOKENS_PER_SECOND)}`;
  console.log(`${BATCHES.at(-1)} episodes, all to wire lists: ${millions(reached)} datum tokens per CPU-second; ${goal}`);
  if (reached < GOAL_TOKENS_PER_SECOND) process.exitCode = 1;
}

function inOwnProcess(episodes: number): Measured {
  const args = ['--expose-gc', `${import.meta.dirname}/bench.ts`, 'datums', String(episodes)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the bench of ${episodes} episodes ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as Measured;
}

function measure(episodes: number): Measured {
  const batches = Array.from({ length: WARM_UP + MEASURED }, () => {
    collectGarbage(); // what the batch before left behind is not this one's memory
    return runBatch(episodes);
  }).slice(WARM_UP);
  const medianOf = (secondsOf: (seconds: Record<Stage, number>) => number) => median(batches.map(({ seconds }) => secondsOf(seconds)));
  const stages = [...TO_WIRE, ...BESIDES].map((stage) => [stage, medianOf((seconds) => seconds[stage])]);
  const all = medianOf((seconds) => TO_WIRE.reduce((sum, stage) => sum + seconds[stage], 0));
  return {
    episodes,
    datumTokens: batches[0]?.datumTokens ?? 0,
    seconds: { ...Object.fromEntries(stages), 'all to wire lists': all },
    peakMegabytes: process.resourceUsage().maxRSS / 1024,
  };
}

function print(results: readonly Measured[]): void {
  const episodes = results.map((result) => `${result.episodes} episodes`);
  const aligned = results.map(() => 'right' as const);
  const head = ['million datum tokens per CPU-second', ...episodes, 'time per token, most : fewest'];
  const table = tableOf(head, ['left', ...aligned, 'right']);
  for (const stage of [...TO_WIRE, 'all to wire lists', ...BESIDES] as const) {
    const speeds = results.map((result) => perSecond(result, stage));
    const ratio = (speeds[0] as number) / (speeds.at(-1) as number);
    table.push([stage, ...speeds.map(millions), ratio.toFixed(2)]);
  }
  table.push(['datum tokens', ...results.map(({ datumTokens }) => millions(datumTokens)), '']);
  table.push(['peak memory', ...results.map(({ peakMegabytes }) => `${peakMegabytes.toFixed(0)} MB`), '']);
  console.log(`Episodes of ${TURNS} turns × ${TOKENS_PER_TURN} tokens, medians of ${MEASURED} batches`);
  console.log(table.toString());
}

function perSecond({ datumTokens, seconds }: Measured, stage: Stage | 'all to wire lists'): number {
  return datumTokens / seconds[stage];
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

function millions(count: number): string {
  return `${(count / 1e6).toFixed(count < 1e7 ? 2 : 1)} M`;
}
