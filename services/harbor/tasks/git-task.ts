import { join } from 'node:path';
import { BadHarborInput } from '../errors.ts';
import { taskProblem } from '../task-folder.ts';
import { refuseUnfetched } from './lfs.ts';
import { copyTask } from './task-tree.ts';

/** Takes one task out of a work tree. @throws BadHarborInput for what is no task, or is not whole */
export async function takeOut(repo: string, { url, commit }: { url: string; commit: string }, path: string, made: string): Promise<void> {
  const told = `${path} of ${url} at ${commit}`;
  await copyTask(join(repo, path), made).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new BadHarborInput(`there is no folder ${told}`);
    throw error;
  });
  const problem = await taskProblem(made);
  if (problem !== null) throw new BadHarborInput(`task ${told} ${problem}`);
  await refuseUnfetched(made, told);
}
