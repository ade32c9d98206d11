import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { SimFiles, SimResult } from './content.ts';
import { createRng, demonstrate, demonstrateSloppily, initialFiles, observationText, pretrainingTasks, runSimulated } from './content.ts';

const root = mkdtempSync(join(tmpdir(), 'shell-sim-'));
afterAll(() => rmSync(root, { recursive: true }));
let directories = 0;

type Outcome = { results: SimResult[]; files: Record<string, string> };

/** Only these ever reach the real shell: no path, no quote, no separator. */
const SAFE_LINE = /^[\w *>-]*$/;

function runForReal(files: SimFiles, lines: readonly string[]): Outcome {
  const cwd = join(root, String(directories++));
  mkdirSync(cwd);
  for (const [name, content] of files) writeFileSync(join(cwd, name), content);
  const results = lines.map((line) => {
    if (!SAFE_LINE.test(line)) throw new Error(`not a safe line: ${line}`);
    const { status, stdout } = spawnSync('/bin/sh', ['-c', line], {
      cwd,
      input: '',
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    });
    return { exitCode: status ?? -1, stdout };
  });
  return { results, files: Object.fromEntries(readdirSync(cwd).map((name) => [name, readFileSync(join(cwd, name), 'utf8')])) };
}

function runInSimulator(start: SimFiles, lines: readonly string[]): Outcome {
  const files = new Map(start);
  const results = lines.map((line) => runSimulated(line, files));
  return { results, files: Object.fromEntries(files) };
}

/** Programs end with 1 or 2 as they like where they fail (`ls` differs between systems); the shell's own codes are exact. */
const onLinux = process.platform === 'linux';
const comparable = ({ results, files }: Outcome): Outcome =>
  onLinux
    ? { results, files }
    : { results: results.map((result) => ({ ...result, exitCode: result.exitCode === 2 ? 1 : result.exitCode })), files };

function expectAgreement(files: SimFiles, lines: readonly string[]): void {
  expect(comparable(runInSimulator(files, lines)), lines.join(' ; ')).toEqual(comparable(runForReal(files, lines)));
}

describe('the simulator agrees with /bin/sh', () => {
  it('on correct and sloppy demonstrations', () => {
    const rng = createRng(11);
    const stream = pretrainingTasks(11);
    for (let i = 0; i < 160; i++) {
      const task = stream.next().value;
      const turns = i % 4 === 0 ? demonstrate(task) : demonstrateSloppily(task, rng);
      const lines = turns.map(({ action }) => action).filter((action) => action !== 'done');
      expectAgreement(initialFiles(task), lines);
    }
  });

  it('on random commands over few names, so that they collide', () => {
    const rng = createRng(12);
    const word = (): string => rng.pick(['sun', 'key', 'map', '7', '3', '*', 'k*']);
    const target = (): string => rng.pick(['sun', 'key', 'map', '7']);
    const templates: (() => string)[] = [
      () => `echo ${word()} > ${target()}`,
      () => `echo ${word()} ${word()} >> ${target()}`,
      () => `echo ${word()}`,
      () => `cp ${word()} ${target()}`,
      () => `mv ${word()} ${target()}`,
      () => `rm ${word()} ${word()}`,
      () => `cat ${word()} ${word()}`,
      () => `ls ${word()}`,
      () => `grep -l ${rng.below(10)} ${word()} ${word()}`,
      () => `grep ${rng.below(10)} ${word()}`,
    ];
    for (let i = 0; i < 80; i++) {
      const files: SimFiles = new Map([
        ['key', '3\n'],
        ['sun', '7\n3\n'],
      ]);
      expectAgreement(
        files,
        Array.from({ length: 4 }, () => rng.pick(templates)()),
      );
    }
  });

  it.each([
    ['cp sun'],
    ['cp'],
    ['mv sun'],
    ['mv'],
    ['rm'],
    ['cat'],
    ['ls'],
    ['grep'],
    ['grep -l'],
    ['grep -l 7'],
    ['echo'],
    [''],
    ['qqx sun'],
    ['qqx 7 > map'],
    ['sun'],
    ['> map'],
    ['echo 7 >'],
    ['echo 7>sun'],
    ['echo 7 >sun'],
    ['echo a> map'],
    ['cp sun key map'],
    ['cp sun sun'],
    ['mv sun sun'],
    ['done'],
    ['done sun'],
    ['echo 7 > map > key'],
    ['ls > map'],
    ['cat sun key > map'],
    ['  rm   sun '],
    ['grep -l 7 * > map'],
  ])('on `%s`', (line) => {
    expectAgreement(
      new Map([
        ['sun', '7\n'],
        ['key', '3\n'],
      ]),
      [line],
    );
  });

  it.each([['rm *'], ['grep -l 7 *'], ['cat *'], ['cp * sun'], ['ls']])('on `%s` in an empty directory', (line) => {
    expectAgreement(new Map(), [line]);
  });
});

describe('what the simulator does not know', () => {
  it.each([["echo 'a' > sun"], ['rm sun; ls'], ['cat sun | rm key'], ['rm ../sun'], ['cat /etc/passwd'], ['rm $(ls)']])(
    'is refused untouched: %s',
    (line) => {
      const files: SimFiles = new Map([['sun', '7\n']]);
      expect(runSimulated(line, files)).toEqual({ exitCode: 2, stdout: '' });
      expect(files).toEqual(new Map([['sun', '7\n']]));
    },
  );
});

describe('observations', () => {
  it.each([
    [0, '', '[0]'],
    [0, '7\n', '[0] 7'],
    [0, 'key\nsun\n', '[0] key sun'],
    [127, '', '[127]'],
    [1, '\n', '[1]'],
  ])('%i with %j reads %s', (exitCode, stdout, text) => {
    expect(observationText(exitCode, stdout)).toBe(text);
  });
});
