import type { Command } from 'commander';
import { collectRun, type GcOrder, type Judged, judge } from '../../services/blobs/gc.ts';
import type { ObjectStore } from '../../services/blobs/object-store.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import type { RunsInStore } from '../blobs.ts';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../input/number.ts';
import { withLink } from '../session.ts';
import { gcTable, storeTable, sumText } from '../view/blobs-table.ts';
import { addCommand, run } from './command.ts';

type GcOptions = { readonly json?: boolean; readonly run?: readonly string[]; readonly olderThanDays?: number; readonly yes?: boolean };

const DAY_MS = 86_400_000;

export function addBlobs(program: Command): void {
  const blobs = program.command('blobs').description('what runs keep in the blob store, and its garbage collection').helpCommand(false);
  addCommand(blobs, 'list', 'what the store keeps, by run').action(run<{ json?: boolean }, []>(listBlobs));
  addCommand(blobs, 'gc', 'remove what ended runs keep; shows what would go unless --yes is given. Ids of runs stay taken')
    .option('--run <id...>', 'only these runs; the only way to remove one that the Temporal server does not know')
    .option('--older-than-days <n>', 'only runs that wrote nothing in the last n days', wholeNumber(0))
    .option('--yes', 'remove it')
    .action(run<GcOptions, []>(collectBlobs));
}

async function listBlobs(console: Console): Promise<number> {
  const { runs, stateOf } = (await readRuns()).found;
  const listed = runs.map((run) => ({ ...run, state: stateOf(run.runId) }));
  console.result(listed.map(told));
  console.print(listed.length === 0 ? 'the store keeps nothing of any run' : storeTable(listed, console.colors));
  return EXIT.ok;
}

async function collectBlobs(console: Console, { run: runIds, olderThanDays: days, yes = false }: GcOptions): Promise<number> {
  if (yes && runIds === undefined && days === undefined)
    throw new CliError('say which runs: --run ID, or --older-than-days N (0 takes every run that has ended)');
  const { found, objects } = await readRuns();
  const order: GcOrder = { runIds: runIds ?? null, writtenBeforeMs: days === undefined ? null : Date.now() - days * DAY_MS };
  const judged = judge(found.runs, found.stateOf, order);
  refuseNamed(judged, runIds ?? []);
  const taken = judged.filter(({ kept }) => kept === null);
  if (yes) for (const { runId } of taken) await collectRun(objects, runId);
  console.result({ removed: yes, runs: judged.map((run) => ({ ...told(run), kept: run.kept })) });
  console.print(judged.length === 0 ? 'the store keeps nothing of any run' : gcTable(judged, console.colors));
  console.print(yes ? `removed ${sumText(taken)}` : `would remove ${sumText(taken)}; nothing was removed: add --yes`);
  return EXIT.ok;
}

/** Of runs that were named, each must go: else nothing goes. */
function refuseNamed(judged: readonly Judged[], runIds: readonly string[]): void {
  const problems = runIds.flatMap((runId) => {
    const found = judged.find((run) => run.runId === runId);
    if (!found) return [`the store keeps nothing of a run ${runId}; \`${COMMAND} blobs list\` lists runs`];
    return found.kept === null ? [] : [`${runId} is kept: ${found.kept}`];
  });
  if (problems.length > 0) throw new CliError(problems.join('\n'));
}

async function readRuns(): Promise<{ found: RunsInStore; objects: ObjectStore }> {
  const [{ openObjectStore }, { readStore }] = await Promise.all([import('../../services/blobs/open.ts'), import('../blobs.ts')]);
  const objects = await openObjectStore(readAppSettings());
  return { objects, found: await withLink((link) => readStore(objects, link)) };
}

/** As `--json` has it. */
function told({ runId, state, objects, bytes, newestAtMs, readBy }: Omit<Judged, 'kept'>) {
  return { runId, state, objects, bytes, newestAt: new Date(newestAtMs).toISOString(), readBy };
}
