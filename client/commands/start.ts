import type { Command } from 'commander';
import { Option } from 'commander';
import { PROJECT_ROOT, readAppSettings } from '../../services/settings/index.ts';
import type { Console } from '../console.ts';
import { EXIT } from '../exit-codes.ts';
import { checkedRunId, freshRunId } from '../input/run-id.ts';
import type { StartRequest } from '../input/start-input.ts';
import { withLink } from '../session.ts';
import { addCommand, run } from './command.ts';
import { addDeciding } from './deciding.ts';
import { type WatchOptions, watchRun } from './watch.ts';

type Options = WatchOptions & StartRequest & { readonly id?: string; readonly detach?: boolean };

/** Adds `start` and returns it. */
export function addStart(program: Command): Command {
  const command = addCommand(program, 'start', 'start a distillation run and follow it')
    .option('--agent <name>', 'the agent to distill for', 'turn')
    .requiredOption('--config <file>', 'run config (TOML)')
    .requiredOption('--tasks <file>', 'training tasks: a JSON array of task ids')
    .requiredOption('--holdout <file>', 'held-out tasks: a JSON array of task ids')
    .addOption(new Option('--backend <name>', "where sandboxes run; default: the config's").choices(['local', 'e2b']))
    .option('--promote', 'ask a person to promote accepted weights to the agent')
    .option('--yes', 'do not ask about the cost when it is known or capped')
    .option('--run-dir <dir>', "the run's folder; default .stillroom/runs/<id>")
    .option('--tasks-elsewhere', "the job template and the tasks are on the workers' machines only: do not look for them here")
    .option('--id <id>', "the run's name; default: a fresh one")
    .option('--detach', 'print the id and return')
    .option('--fail-on-reject', 'exit code 3 when the gate does not accept');
  return addDeciding(command).action(run(start));
}

async function start(console: Console, options: Options): Promise<number> {
  const runId = options.id === undefined ? freshRunId('run', new Date()) : checkedRunId(options.id);
  const { prepareStart } = await import('../input/start-input.ts');
  const { input, config } = await prepareStart(options, PROJECT_ROOT, process.stdin.isTTY === true);
  const summary = `${options.agent}: ${config.student.base_model} learns from ${config.teacher.model}`;
  return withLink(async (link) => {
    const [{ startRun }, { RunClient }] = await Promise.all([import('../starting.ts'), import('../run-client.ts')]);
    await startRun(link, input, { runId, taskQueue: readAppSettings().taskQueues.control, summary });
    if (options.detach) {
      console.result({ runId });
      console.print(`started ${runId}\n  follow it with: stillroom watch ${runId}`);
      return EXIT.ok;
    }
    console.print(`started ${runId}`);
    return watchRun(console, new RunClient(link, runId), options);
  });
}
