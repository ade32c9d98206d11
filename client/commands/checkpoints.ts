import type { Command } from 'commander';
import { type CheckpointsView, viewAfter } from '../../core/training/checkpoint-view.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import type { Console } from '../console.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../input/number.ts';
import type { RunClient } from '../run-client.ts';
import { withRun } from '../session.ts';
import { checkpointsText } from '../view/checkpoints-table.ts';
import { addCommand, run } from './command.ts';
import { addDeciding, type Deciding, decisionOf } from './deciding.ts';

type Options = Deciding & { readonly json?: boolean; readonly sweep?: boolean; readonly keepLast?: number; readonly yes?: boolean };

export function addCheckpoints(program: Command): void {
  const about = 'what a run saved on the service, how long it lives, and what would be swept';
  addDeciding(addCommand(program, 'checkpoints <run>', about))
    .option('--sweep', 'show what a sweep would delete; with --yes, delete it')
    .option('--keep-last <n>', 'how many of the last ones stay; default: checkpoints.keep_last of the config', wholeNumber(1))
    .option('--yes', 'with --sweep: delete')
    .action(run<Options, [string]>(checkpoints));
}

async function checkpoints(console: Console, options: Options, runId: string): Promise<number> {
  const { sweep = false, yes = false } = options;
  if (yes && !sweep) throw new CliError('--yes is for --sweep: nothing else here changes anything');
  return withRun(runId, async (found) => {
    const { open } = await found.state();
    const known = await found.checkpoints(options.keepLast);
    if (sweep && known.keepLast === null)
      throw new CliError(`say how many of the last ones stay: --keep-last; the config of ${runId} does not`);
    const view = open ? await ofOpen(found, known, options) : await ofEnded(found, known, options, console);
    console.result(view);
    console.print(checkpointsText(view, { sweep, isDone: yes }, console.colors));
    const isLeft = view.rows.some(({ gone, undeleted }) => gone === null && undeleted !== null);
    return sweep && yes && isLeft ? EXIT.failed : EXIT.ok;
  });
}

/** While a run goes on it knows best, and only it deletes. */
async function ofOpen(found: RunClient, known: CheckpointsView, options: Options): Promise<CheckpointsView> {
  if (!options.sweep || !options.yes || known.keepLast === null) return known;
  return found.sweep({ ...decisionOf(options), by: options.by, keepLast: known.keepLast });
}

/** The ledger of a run that has ended stands still: the service is asked what became of it. */
async function ofEnded(found: RunClient, known: CheckpointsView, { sweep, yes }: Options, console: Console): Promise<CheckpointsView> {
  const there = known.rows.filter(({ gone }) => gone === null);
  const remove = sweep && yes ? there.filter(({ wouldSweep }) => wouldSweep).map(({ path }) => path) : [];
  const look = there.map(({ path }) => path);
  if (look.length === 0) return known;
  try {
    const told = await found.tidy({ look, remove }, readAppSettings().taskQueues.control);
    return viewAfter(known, told, new Date().toISOString());
  } catch (error) {
    if (remove.length > 0 || !(error instanceof CliError)) throw error;
    console.remark(`${error.message}; below is what the run knew at its end`);
    return known;
  }
}
