import { createHash } from 'node:crypto';
import type { Rng } from './rng.ts';
import { sample } from './rng.ts';

export const TASK_KINDS = ['write', 'append', 'copy', 'move', 'delete', 'delete-with', 'copy-delete', 'two-writes'] as const;
export type TaskKind = (typeof TASK_KINDS)[number];

/** The 24 file names of the tiny world; none is also a command. */
export const FILE_NAMES = 'bag bed box bus cup dog egg fan hat ice ink jam jet key leg map net owl pen pie rug sun toy van'.split(
  ' ',
) as readonly string[];

const DIGITS = '0123456789'.split('');

/** One command of a task's solution, before it is written as shell text. */
export type Step =
  | { readonly verb: 'write' | 'append'; readonly digit: string; readonly to: string }
  | { readonly verb: 'copy' | 'move'; readonly from: string; readonly to: string }
  | { readonly verb: 'delete'; readonly name: string }
  | { readonly verb: 'find'; readonly digit: string };

export type QuickTask = {
  /** Unique over all splits of one generation; also the name of the task's folder. */
  readonly id: string;
  readonly kind: TaskKind;
  /** File name → its one digit (on disk followed by a newline). */
  readonly files: Readonly<Record<string, string>>;
  /** What to do, e.g. `copy sun to map`; the model reads it as `task copy sun to map`. */
  readonly instruction: string;
  /** File name → exact bytes that solve the task, newlines included. No other file may be left. */
  readonly expected: Readonly<Record<string, string>>;
  /** The commands that solve it, in order, without `done`. */
  readonly steps: readonly Step[];
  /** What makes two tasks "the same" for the splits: the kind with the names and digits in their roles. */
  readonly identity: string;
};

type Draft = {
  readonly instruction: string;
  readonly steps: readonly Step[];
  readonly roles: readonly string[];
  readonly present: readonly string[];
  readonly absent: readonly string[];
};

/** Words of one kind: which names and digits play which role. `present` must exist at the start, `absent` must not. */
function draft(rng: Rng, kind: TaskKind): Draft {
  const [a, b, c] = sample(rng, FILE_NAMES, 3) as [string, string, string];
  const d = rng.pick(DIGITS);
  const e = rng.pick(DIGITS);
  const copy: Step = { verb: 'copy', from: a, to: b };
  switch (kind) {
    case 'write': {
      const present = rng.chance(0.75) ? [a] : [];
      return {
        instruction: `write ${d} to ${a}`,
        steps: [{ verb: 'write', digit: d, to: a }],
        roles: [a, d],
        present,
        absent: present.length > 0 ? [] : [a],
      };
    }
    case 'append':
      return { instruction: `append ${d} to ${a}`, steps: [{ verb: 'append', digit: d, to: a }], roles: [a, d], present: [a], absent: [] };
    case 'copy':
      return { instruction: `copy ${a} to ${b}`, steps: [copy], roles: [a, b], present: [a], absent: [b] };
    case 'move':
      return { instruction: `move ${a} to ${b}`, steps: [{ verb: 'move', from: a, to: b }], roles: [a, b], present: [a], absent: [b] };
    case 'delete':
      return { instruction: `delete ${a}`, steps: [{ verb: 'delete', name: a }], roles: [a], present: [a], absent: [] };
    case 'delete-with':
      return {
        instruction: `delete the file with ${d}`,
        steps: [
          { verb: 'find', digit: d },
          { verb: 'delete', name: a },
        ],
        roles: [a, d],
        present: [a],
        absent: [],
      };
    case 'copy-delete':
      return {
        instruction: `copy ${a} to ${b} and delete ${c}`,
        steps: [copy, { verb: 'delete', name: c }],
        roles: [a, b, c],
        present: [a, c],
        absent: [b],
      };
    case 'two-writes': {
      const steps: Step[] = [
        { verb: 'write', digit: d, to: a },
        { verb: 'write', digit: e, to: b },
      ];
      // Naming the two writes in the other order is the same work, so both orders share one identity.
      return { instruction: `write ${d} to ${a} and ${e} to ${b}`, steps, roles: [a + d, b + e].sort(), present: [a], absent: [] };
    }
  }
}

/** Draws a task of a kind: 2–4 files, digits distinct (so that "the file with 7" is one file), no step without effect. */
export function drawTask(rng: Rng, kind: TaskKind): QuickTask {
  const { instruction, steps, roles, present, absent } = draft(rng, kind);
  const others = FILE_NAMES.filter((name) => !present.includes(name) && !absent.includes(name));
  const names = [...present, ...sample(rng, others, 2 + rng.below(3) - present.length)].sort();
  const digits = sample(rng, DIGITS, names.length);
  const files = Object.fromEntries(names.map((name, i) => [name, digits[i] as string]));
  if (kind === 'delete-with') giveDigit(files, roles[0] as string, roles[1] as string);
  if (steps.some((step) => step.verb === 'write' && files[step.to] === step.digit)) return drawTask(rng, kind);
  const expected = apply(files, steps);
  const slug = instruction.replaceAll(' ', '-');
  const task = { kind, files, instruction, expected, steps, identity: [kind, ...roles].join('|') };
  return { id: `${slug}-${contentDigest(task).slice(0, 6)}`, ...task };
}

/** Gives `name` the digit, swapping with whichever file holds it. */
function giveDigit(files: Record<string, string>, name: string, digit: string): void {
  const holder = Object.keys(files).find((other) => files[other] === digit);
  if (holder !== undefined) files[holder] = files[name] as string;
  files[name] = digit;
}

/** What the files must hold after the steps, worked out without a shell (the shell is what is being tested). */
function apply(files: Readonly<Record<string, string>>, steps: readonly Step[]): Record<string, string> {
  const left = new Map(Object.entries(files).map(([name, digit]) => [name, `${digit}\n`]));
  for (const step of steps) {
    if (step.verb === 'write') left.set(step.to, `${step.digit}\n`);
    if (step.verb === 'append') left.set(step.to, `${left.get(step.to) ?? ''}${step.digit}\n`);
    if (step.verb === 'copy' || step.verb === 'move') left.set(step.to, left.get(step.from) as string);
    if (step.verb === 'move') left.delete(step.from);
    if (step.verb === 'delete') left.delete(step.name);
  }
  return Object.fromEntries([...left].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** sha256 (hex) over what the task is: its files, its instruction and the files that solve it; not its id. */
export function contentDigest(task: Pick<QuickTask, 'files' | 'instruction' | 'expected'>): string {
  return createHash('sha256')
    .update(JSON.stringify([task.files, task.instruction, task.expected]))
    .digest('hex');
}

/** The first user message: the listing, then the instruction; no newline at the end. */
export function promptText(task: Pick<QuickTask, 'files' | 'instruction'>): string {
  const names = Object.keys(task.files).sort();
  return `files ${names.length > 0 ? names.join(' ') : '-'}\ntask ${task.instruction}`;
}
