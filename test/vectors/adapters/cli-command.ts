import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { addStart } from '../../../client/commands/start.ts';
import type { StartRequest } from '../../../client/input/start-input.ts';

export type Step = {
  args: string[];
  engine?: 'ok' | 'rejected' | 'budget' | 'runtime_error' | 'value_error' | 'dies_before_snapshot';
  input?: string | null;
  delete?: string[];
  write?: Record<string, string>;
};
export type InvokeCase = {
  files: Record<string, string | null>;
  harness_store: Record<string, string[]>;
  world_models: string[];
  interactive: boolean;
  steps: Step[];
};

/** The recorder's options that are ours under another name, or under the same. */
const OPTIONS: Readonly<Record<string, { readonly ours: string; readonly value: 'none' | 'text' | 'file' }>> = {
  '--distill-config': { ours: '--config', value: 'file' },
  '--task-ids': { ours: '--tasks', value: 'file' },
  '--holdout-task-ids': { ours: '--holdout', value: 'file' },
  '--run-dir': { ours: '--run-dir', value: 'text' },
  '--backend': { ours: '--backend', value: 'text' },
  '--yes': { ours: '--yes', value: 'none' },
  '--promote': { ours: '--promote', value: 'none' },
};
const INPUTS = ['--distill-config', '--task-ids', '--holdout-task-ids'];

/** `optimize harness AGENT ENVIRONMENT [options]`, taken apart. */
function parts([, , agent = '', environment = '', ...options]: readonly string[]) {
  const given = new Map<string, string | null>();
  for (let i = 0; i < options.length; i++) {
    const [name, next] = [options[i] ?? '', options[i + 1]];
    const valued = next !== undefined && !next.startsWith('--');
    given.set(name, valued ? next : null);
    if (valued) i++;
  }
  return { agent, environment, given };
}

/** Why a case says nothing about us; null when it does. Every reason follows from what is asked for. */
export function whyNotApplicable({ steps, world_models }: InvokeCase): string | null {
  if (world_models.length > 0) return 'there are no world models here whose names could clash';
  if (steps.some(({ args }) => args.includes('--resume')))
    return 'Temporal resumes runs here, without a command and without a record that could be exchanged';
  const reasons = steps.map((step, index) => {
    const { environment, given } = parts(step.args);
    const stranger = [...given.keys()].find((name) => !OPTIONS[name] && name !== '--mode');
    if (given.get('--mode') !== 'distill') return 'there are no other modes here';
    if (environment !== 'harbor') return 'tasks are always harbor tasks here';
    if (stranger !== undefined) return `there is no option ${stranger} here`;
    if (!given.has('--run-dir')) return 'the run folder has a default here';
    if (step.engine === 'budget') return 'a run whose budget is used up waits for setBudget here, and has no exit code yet';
    if (index > 0 && steps[index - 1]?.engine === 'dies_before_snapshot')
      return 'a run that died keeps its folder here: no other run takes it over';
    if (index > 0 && INPUTS.some((name) => !given.has(name)))
      return 'two mistakes at once: the command line is judged before the worker looks at the folder here';
    return null;
  });
  return reasons.find((reason) => reason !== null) ?? null;
}

export type Parsed = { readonly request: StartRequest } | { readonly refused: string };

/** The same command line given to our `start`; paths count from `root`. `refused` is commander's name of what it refused. */
export async function parseStart(args: readonly string[], root: string): Promise<Parsed> {
  const { agent, given } = parts(args);
  const ours = [...given].flatMap(([name, value]) => {
    const option = OPTIONS[name];
    if (!option) return [];
    if (value === null) return [option.ours];
    return [option.ours, option.value === 'file' ? join(root, value) : value];
  });
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
  let request: StartRequest | null = null;
  addStart(program).action((options: StartRequest) => {
    request = options;
  });
  try {
    await program.parseAsync(['start', '--agent', agent, ...ours], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { refused: error.code };
    throw error;
  }
  if (request === null) throw new Error('commander called no action');
  return { request };
}
