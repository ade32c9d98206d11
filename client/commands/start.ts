import type { Command } from 'commander';
import { estimateCost } from '../../core/estimate/index.ts';
import { branchText } from '../../core/run/branch.ts';
import { needsConfirmation } from '../../core/run/cost-confirmation.ts';
import { PROJECT_ROOT, readAppSettings } from '../../services/settings/index.ts';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { EXIT } from '../exit-codes.ts';
import { checkedRunId, freshRunId } from '../input/run-id.ts';
import type { StartRequest } from '../input/start-input.ts';
import { withLink } from '../session.ts';
import { estimateTable } from '../view/estimate-table.ts';
import { addCommand, run } from './command.ts';
import { addDeciding } from './deciding.ts';
import { addRunFiles } from './run-file-flags.ts';
import { type WatchOptions, watchRun } from './watch.ts';

type Options = WatchOptions & StartRequest & { readonly id?: string; readonly detach?: boolean };

/** Adds `start` and returns it. */
export function addStart(program: Command): Command {
  const command = addCommand(program, 'start', 'start a distillation run and follow it');
  addRunFiles(
    command.option(
      '--agent <name>',
      "the agent to distill for: pi (harbor's terminus-2), turn (small, for the tiny models), or NAME[@REF] of a stored one",
      'pi',
    ),
    'required',
  )
    .option('--promote', 'ask a person to promote accepted weights to the agent')
    .option('--yes', 'do not ask about the cost when it is known or capped')
    .option('--run-dir <dir>', "the run's folder; default .stillroom/runs/<id>")
    .option('--tasks-elsewhere', "the job template and the tasks are on the workers' machines only: do not look for them here")
    .option('--from <run>', "start from another run's trained weights: its id, RUN@step-N, or the tinker:// path of saved training state")
    .option('--id <id>', "the run's name; default: a fresh one")
    .option('--detach', 'print the id and return')
    .option('--fail-on-reject', 'exit code 3 when the gate does not accept');
  return addDeciding(command).action(run(start));
}

async function start(console: Console, options: Options): Promise<number> {
  const runId = options.id === undefined ? freshRunId('run', new Date()) : checkedRunId(options.id);
  const { prepareStart } = await import('../input/start-input.ts');
  const { input, config, sizes, branch } = await prepareStart(options, PROJECT_ROOT, process.stdin.isTTY === true);
  const estimate = estimateCost(config, sizes);
  const maxUsd = config.budget.max_usd;
  // Where the run will ask here, its own estimate is shown above the question.
  const asksHere = !options.detach && needsConfirmation({ fullyPriced: estimate.fullyPriced, maxUsd, yes: options.yes === true });
  const summary = `${options.agent}: ${config.student.base_model} learns from ${config.teacher.model}`;
  return withLink(async (link) => {
    const [{ startRun }, { RunClient }] = await Promise.all([import('../starting.ts'), import('../run-client.ts')]);
    if (branch) console.print(`starts from ${branchText(branch)}`);
    if (!asksHere) console.print(`${estimateTable(estimate, maxUsd, console.colors)}\n`);
    await startRun(link, input, { runId, taskQueue: readAppSettings().taskQueues.control, summary });
    if (options.detach) {
      console.result({ runId });
      console.print(`started ${runId}\n  follow it with: ${COMMAND} watch ${runId}`);
      return EXIT.ok;
    }
    console.print(`started ${runId}`);
    return watchRun(console, new RunClient(link, runId), options);
  });
}
