import { describe, expect, it } from 'vitest';
import type { QuickTask } from './content.ts';
import {
  contentDigest,
  createRng,
  demonstrate,
  demonstrateSloppily,
  episodeText,
  filesAfter,
  isSolved,
  MAX_ACTION_CHARS,
  MAX_TURNS,
  pretrainingTasks,
  promptText,
  quickstartSplits,
  SLOPPINESS,
  TASK_KINDS,
} from './content.ts';

const CONTEXT_TOKENS = 192;

function take(count: number, seed: number): QuickTask[] {
  const stream = pretrainingTasks(seed);
  return Array.from({ length: count }, () => stream.next().value);
}

const countOf = (tasks: readonly QuickTask[], kind: string): number => tasks.filter((task) => task.kind === kind).length;

describe('the splits', () => {
  const { train, holdout } = quickstartSplits();
  const pretraining = take(20_000, 1);

  it.each(TASK_KINDS)('has %s in every split', (kind) => {
    expect(countOf(train, kind)).toBe(32);
    expect(countOf(holdout, kind)).toBe(6);
    expect(countOf(pretraining, kind)).toBe(2_500);
  });

  it('shares no identity and no content between any two splits, whatever the seeds', () => {
    const other = quickstartSplits(777);
    const splits = [[...train, ...other.train], [...holdout, ...other.holdout], pretraining];
    for (const keyOf of [(task: QuickTask) => task.identity, contentDigest]) {
      const keys = splits.map((tasks) => new Set(tasks.map(keyOf)));
      const union = new Set(keys.flatMap((set) => [...set]));
      expect(union.size).toBe(keys.reduce((sum, set) => sum + set.size, 0));
    }
  });

  it('never shows a held-out instruction elsewhere; "the file with N" differs by which file that is', () => {
    const seen = new Set([...train, ...pretraining].map(({ instruction }) => instruction));
    const repeated = holdout.filter(({ kind, instruction }) => kind !== 'delete-with' && seen.has(instruction));
    expect(repeated).toEqual([]);
  });

  it('repeats no task and no id', () => {
    const tasks = [...train, ...holdout];
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(tasks.length);
    expect(new Set(tasks.map(contentDigest)).size).toBe(tasks.length);
    expect(new Set(holdout.map(({ identity }) => identity)).size).toBe(holdout.length);
  });

  it('depends on the seed only', () => {
    expect(quickstartSplits()).toEqual({ train, holdout });
    expect(take(50, 1)).toEqual(pretraining.slice(0, 50));
    expect(take(50, 2)).not.toEqual(pretraining.slice(0, 50));
    expect(quickstartSplits(21).train).not.toEqual(train);
  });

  it('says so when a split cannot be that large', () => {
    expect(() => quickstartSplits(1, { trainPerKind: 1, holdoutPerKind: 7 })).toThrow('holdout: there are not 7 different "delete" tasks');
  });
});

describe('demonstrations', () => {
  const tasks = take(4_000, 3);

  it('solve every task, within the limits of the world', () => {
    for (const task of tasks) {
      const turns = demonstrate(task);
      expect(isSolved(task, filesAfter(task, turns)), `${task.id}`).toBe(true);
      expect(turns.at(-1)?.action).toBe('done');
      expect(turns.length).toBeLessThanOrEqual(MAX_TURNS);
    }
  });

  it('do not solve a task by doing nothing', () => {
    expect(tasks.filter((task) => isSolved(task, filesAfter(task, [])))).toEqual([]);
  });

  it('read the answer of grep before deleting', () => {
    const task = tasks.find(({ kind }) => kind === 'delete-with') as QuickTask;
    const turns = demonstrate(task);
    expect(turns[1]?.action).toBe(`rm ${turns[0]?.observation.replace('[0] ', '')}`);
  });

  it('solve about four in ten when sloppy, each kind sometimes and not always', () => {
    const rng = createRng(4);
    const solved = tasks.filter((task) => isSolved(task, filesAfter(task, demonstrateSloppily(task, rng))));
    for (const kind of TASK_KINDS) {
      const rate = countOf(solved, kind) / countOf(tasks, kind);
      expect(rate, kind).toBeGreaterThan(0.2);
      expect(rate, kind).toBeLessThan(0.55);
    }
    expect(solved.length / tasks.length).toBeGreaterThan(0.34);
    expect(solved.length / tasks.length).toBeLessThan(0.43);
  });

  it('are the correct ones when nothing is allowed to go wrong', () => {
    const careful = {
      ...SLOPPINESS,
      missingDone: 0,
      byKind: Object.fromEntries(TASK_KINDS.map((kind) => [kind, 0])) as typeof SLOPPINESS.byKind,
    };
    const rng = createRng(5);
    for (const task of tasks.slice(0, 200)) expect(demonstrateSloppily(task, rng, careful)).toEqual(demonstrate(task));
  });

  it('stay short when sloppy, and fit the context with room for two more turns', () => {
    const rng = createRng(6);
    for (const task of tasks) {
      const turns = demonstrateSloppily(task, rng);
      expect(turns.length).toBeLessThanOrEqual(MAX_TURNS);
      for (const { action } of turns) expect(action.length).toBeLessThanOrEqual(MAX_ACTION_CHARS);
      expect(episodeText(task, turns).text.length).toBeLessThanOrEqual(CONTEXT_TOKENS - 40);
    }
  });
});

describe('episode text', () => {
  const task: Pick<QuickTask, 'files' | 'instruction'> = { files: { sun: '7', key: '3' }, instruction: 'delete the file with 7' };
  const turns = [
    { action: 'grep -l 7 *', observation: '[0] sun' },
    { action: 'rm sun', observation: '[0]' },
    { action: 'done', observation: '' },
  ];

  it('reads as the conversation does', () => {
    expect(episodeText(task, turns).text).toBe(
      'files key sun\ntask delete the file with 7\n$ grep -l 7 *\n[0] sun\n$ rm sun\n[0]\n$ done\n',
    );
  });

  it('marks what the assistant wrote, stop tokens included', () => {
    const { text, assistant } = episodeText(task, turns);
    expect(assistant.map(([start, end]) => text.slice(start, end))).toEqual(['grep -l 7 *\n', 'rm sun\n', 'done\n']);
  });

  it('says "files -" for an empty directory', () => {
    expect(promptText({ files: {}, instruction: 'write 1 to sun' })).toBe('files -\ntask write 1 to sun');
  });
});
