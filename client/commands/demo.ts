import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import { endWithParent } from '../../services/processes/index.ts';
import { ALL_ROLES, type Environment, readAppSettings, readEnvironment } from '../../services/settings/index.ts';
import type { Console } from '../console.ts';
import { type Override, parseOverride } from '../demo/overrides.ts';
import { EXIT } from '../exit-codes.ts';
import { positiveNumber, wholeNumber } from '../input/number.ts';
import { type Interrupt, isAbort, onInterrupt } from '../interrupt.ts';
import { type StackFlags, type StackOptions, stackOptions } from '../stack/options.ts';
import { type Stack, startStack } from '../stack/stack.ts';
import { endStack } from '../stack/stopping.ts';
import { openProgressView } from '../view/progress-view.ts';
import { addCommand, run } from './command.ts';
import { type Deciding, decisionOf } from './deciding.ts';
import { addStackFlags } from './stack-flags.ts';

type Options = StackFlags & {
  readonly json?: boolean;
  readonly sandbox?: Environment['sandbox'];
  readonly steps?: number;
  readonly tasksPerBatch?: number;
  readonly groupSize?: number;
  readonly learningRate?: number;
  readonly k?: number;
  readonly holdout?: number;
  readonly configOverride: readonly Override[];
};

export function addDemo(program: Command): void {
  const command = addCommand(program, 'demo', 'the whole job on this machine: no key, no container, no network')
    .addOption(new Option('--sandbox <mode>', 'isolate commands with bwrap, or run them plain as you').choices(['bwrap', 'plain']))
    .option('--steps <n>', 'training steps', wholeNumber(1))
    .option('--tasks-per-batch <n>', 'tasks a step', wholeNumber(1))
    .option('--group-size <n>', 'trials a task', wholeNumber(1))
    .option('--learning-rate <x>', 'learning rate', positiveNumber)
    .option('--k <n>', 'trials a held-out task', wholeNumber(1))
    .option('--holdout <n>', 'how many held-out tasks', wholeNumber(1))
    .option('--config-override <key=value>', 'any other key of the run config; may be repeated', collect, []);
  addStackFlags(command).action(run<Options, []>(demo));
}

const collect = (text: string, earlier: readonly Override[]): readonly Override[] => [...earlier, parseOverride(text)];

/** The keys of the run config that have an option of their own. */
function overridesOf(options: Options): Override[] {
  const named: readonly (readonly [string, number | undefined])[] = [
    ['train.steps', options.steps],
    ['train.tasks_per_batch', options.tasksPerBatch],
    ['train.group_size', options.groupSize],
    ['train.learning_rate', options.learningRate],
    ['gate.k', options.k],
  ];
  const given = named.flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: `${value}` }]));
  return [...given, ...options.configOverride];
}

async function demo(console: Console, options: Options): Promise<number> {
  const found = readEnvironment();
  const environment = { ...found, sandbox: options.sandbox ?? found.sandbox };
  const settings = readAppSettings();
  const given = stackOptions(options, settings, environment, { trainer: true, workers: [ALL_ROLES] });
  const interrupt = onInterrupt();
  endWithParent(() => process.emit('SIGTERM'));
  try {
    return await demoWithStack(console, options, given, settings.taskQueues.control, interrupt);
  } catch (error) {
    if (!isAbort(error)) throw error;
    console.print('interrupted; the same command goes on with this run');
    return EXIT.interrupted;
  } finally {
    interrupt.release();
  }
}

async function demoWithStack(console: Console, options: Options, given: StackOptions, taskQueue: string, interrupt: Interrupt) {
  const { signal } = interrupt;
  const startedAtMs = performance.now();
  const { demoInput } = await import('../demo/inputs.ts');
  const { stateDir, environment } = given;
  const { sandbox } = environment;
  const built = await demoInput({ stateDir, sandbox, overrides: overridesOf(options), holdout: options.holdout ?? null });
  const before = [{ part: 'making the tasks', ms: performance.now() - startedAtMs }];
  const view = openProgressView(console);
  const by: Deciding = { by: userInfo().username };
  const decision = (waitId: string) => decisionOf(by, waitId);
  let stack: Stack | null = null;
  try {
    stack = await startStack(given, { onNotice: ({ line }) => view.remark(line), onStep: (text) => console.print(text), signal });
    const { runDemo } = await import('../demo/run-demo.ts');
    return await runDemo(stack, console, { stateDir, taskQueue, built, before, view, signal, decision });
  } finally {
    if (stack) await endStack(stack, interrupt, (text) => console.print(text));
  }
}
