import type { Rng } from './rng.ts';
import type { SimFiles } from './shell-sim.ts';
import { observationText, runSimulated } from './shell-sim.ts';
import type { Sloppiness } from './sloppiness.ts';
import { corrupt, SLOPPINESS, shellText } from './sloppiness.ts';
import type { QuickTask } from './tasks.ts';

/** One assistant message and what the world answered; the answer to `done` is empty. */
export type Turn = { readonly action: string; readonly observation: string };

export const MAX_TURNS = 5;
export const MAX_ACTION_CHARS = 26;
const DONE: Turn = { action: 'done', observation: '' };

/** The work directory before the first turn. */
export function initialFiles(task: QuickTask): SimFiles {
  return new Map(Object.entries(task.files).map(([name, digit]) => [name, `${digit}\n`]));
}

/** True if the files are exactly the expected ones: nothing missing, nothing else, every byte right. */
export function isSolved(task: QuickTask, files: SimFiles): boolean {
  const names = Object.keys(task.expected);
  return files.size === names.length && names.every((name) => files.get(name) === task.expected[name]);
}

function act(action: string, files: SimFiles): Turn {
  const { exitCode, stdout } = runSimulated(action, files);
  return { action, observation: observationText(exitCode, stdout) };
}

/** The correct episode, ending with `done`. */
export function demonstrate(task: QuickTask): Turn[] {
  const files = initialFiles(task);
  return [...task.steps.map((step) => act(shellText(step), files)), DONE];
}

/**
 * An episode by someone who knows the commands but is careless: each action goes wrong with the probability of its kind, the
 * work may stop early or go on too long. Observations are what the shell says to the action that was really taken.
 */
export function demonstrateSloppily(task: QuickTask, rng: Rng, sloppiness: Sloppiness = SLOPPINESS): Turn[] {
  const files = initialFiles(task);
  const names = [...new Set([...Object.keys(task.files), ...Object.keys(task.expected)])];
  const turns: Turn[] = [];
  for (const step of task.steps) {
    const actual = step.verb === 'delete' && task.kind === 'delete-with' ? { ...step, name: nameFound(turns) ?? rng.pick(names) } : step;
    const action = rng.chance(sloppiness.byKind[task.kind]) ? corrupt(actual, names, rng, sloppiness) : shellText(actual);
    if (action === 'done') return [...turns, DONE];
    turns.push(act(action, files));
  }
  const last = turns.at(-1);
  if (last && rng.chance(sloppiness.missingDone)) turns.push(act(rng.chance(0.5) ? last.action : 'ls', files));
  return [...turns, DONE];
}

/** The one file name in the last answer, or undefined: `grep` may have been mistyped or found nothing. */
function nameFound(turns: readonly Turn[]): string | undefined {
  return /^\[0\] ([a-z]{3})$/.exec(turns.at(-1)?.observation ?? '')?.[1];
}

/** The files after an episode's actions. */
export function filesAfter(task: QuickTask, turns: readonly Turn[]): SimFiles {
  const files = initialFiles(task);
  for (const { action } of turns) if (action !== 'done') runSimulated(action, files);
  return files;
}
