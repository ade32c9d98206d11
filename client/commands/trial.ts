import { resolve } from 'node:path';
import type { Command } from 'commander';
import { BlobStore } from '../../services/blobs/blob-store.ts';
import { type TrialBundle, unpackTrial } from '../../services/harbor/index.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { unpackInto } from '../unpack-trial.ts';
import { trialsTable, trialText } from '../view/trial-files.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean; readonly out?: string };

export function addTrial(program: Command): void {
  addCommand(
    program,
    'trial <run> [trial]',
    'what trials of a run left in their folders: logs, results, exceptions; without a trial, which are kept',
  )
    .option('--out <folder>', 'unpack the files of the trial into a new folder')
    .action(run<Options, [string, string | undefined]>(showTrial));
}

async function showTrial(console: Console, { out }: Options, runId: string, trialId: string | undefined): Promise<number> {
  const [{ openObjectStore }, { allKeptFiles, keptFilesOf }] = await Promise.all([
    import('../../services/blobs/open.ts'),
    import('../../services/blobs/trial-files.ts'),
  ]);
  const objects = await openObjectStore(readAppSettings());
  if (trialId === undefined) {
    if (out !== undefined) throw new CliError('--out is for one trial: name it behind the run');
    const kept = await allKeptFiles(objects, runId);
    console.result(kept);
    console.print(kept.length > 0 ? trialsTable(kept, console.colors) : nothingOf(runId));
    return EXIT.ok;
  }
  const kept = await keptFilesOf(objects, runId, trialId);
  if (kept === null)
    throw new CliError(`no files of a trial ${trialId} are kept of the run ${runId}; \`${COMMAND} trial ${runId}\` lists those that are`);
  const bundle = await unpackTrial(await new BlobStore(objects).get(kept.files));
  if (out !== undefined) await unpackInto(resolve(out), bundle);
  console.result({ ...kept, ...bundle, files: bundle.files.map(({ content: _, ...file }) => file), ref: kept.files });
  console.print(out === undefined ? trialText(kept, bundle, console.colors) : `${told(bundle)} in ${resolve(out)}`);
  return EXIT.ok;
}

const nothingOf = (runId: string) =>
  `no files of any trial are kept of the run ${runId}: none failed, \`harbor.keep_files\` of its config is "none", or they were collected`;

const told = ({ files, leftOut }: TrialBundle) => `${files.length} files${leftOut > 0 ? `, ${leftOut} more were not kept,` : ''}`;
