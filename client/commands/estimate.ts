import type { Command } from 'commander';
import type { RunConfig } from '../../core/config/index.ts';
import { boundOf } from '../../core/run/cost-confirmation.ts';
import type { Console } from '../console.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { estimateFiles } from '../input/estimate-input.ts';
import { withRun } from '../session.ts';
import { estimateTable } from '../view/estimate-table.ts';
import { wrapped } from '../view/wrap.ts';
import { addCommand, run } from './command.ts';
import { addRunFiles } from './run-file-flags.ts';

type Options = {
  readonly json?: boolean;
  readonly config?: string;
  readonly tasks?: string;
  readonly holdout?: string;
  readonly backend?: RunConfig['harbor']['backend'];
};

const FLAGS = ['config', 'tasks', 'holdout', 'backend'] as const;

export function addEstimate(program: Command): void {
  const command = addCommand(program, 'estimate [run]', 'tokens, price and cost by meter: of a run, or of files before anything starts');
  addRunFiles(command, 'optional').action(run<Options, [string | undefined]>(estimate));
}

async function estimate(console: Console, options: Options, runId: string | undefined): Promise<number> {
  const given = FLAGS.filter((flag) => options[flag] !== undefined);
  if (runId !== undefined && given.length > 0)
    throw new CliError(`estimate takes a run or files, not both: leave out ${runId} or ${given.map((flag) => `--${flag}`).join(', ')}`);
  return runId === undefined ? ofFiles(console, options) : ofRun(console, runId);
}

async function ofRun(console: Console, runId: string): Promise<number> {
  return withRun(runId, async (found) => {
    await found.state();
    const [known, status] = await Promise.all([found.estimate(), found.status()]);
    if (!known) throw new CliError(`${runId} has no estimate yet (phase ${status.phase}); try again in a moment`, EXIT.failed);
    const { maxUsd } = status.spend;
    console.result({ ...known, ...boundOf(known, maxUsd) });
    console.print(estimateTable(known, maxUsd, console.colors));
    return EXIT.ok;
  });
}

async function ofFiles(console: Console, { config, tasks, holdout, backend }: Options): Promise<number> {
  if (config === undefined || tasks === undefined || holdout === undefined)
    throw new CliError('estimate needs the id of a run, or all of --config, --tasks and --holdout');
  const found = await estimateFiles({ config, tasks, holdout, ...(backend === undefined ? {} : { backend }) });
  const { sizes, refusals, config: read } = found;
  const maxUsd = read.budget.max_usd;
  console.result({
    ...found.estimate,
    ...boundOf(found.estimate, maxUsd),
    tasks: { train: sizes.nTrain, holdout: sizes.nHoldout },
    refusals: refusals.map(({ field, message }) => ({ field, message })),
  });
  console.print(`${config}: ${read.student.base_model} learns from ${read.teacher.model}\n`);
  console.print(estimateTable(found.estimate, maxUsd, console.colors));
  if (refusals.length > 0) {
    const reasons = refusals.map(({ message }) => wrapped(`- ${message}`, '  '));
    console.print([console.colors.yellow(`\nA start with ${config} would be refused:`), ...reasons].join('\n'));
  }
  return EXIT.ok;
}
