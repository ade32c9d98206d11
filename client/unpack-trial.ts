import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { contentOf, type TrialBundle } from '../services/harbor/index.ts';
import { CliError } from './errors.ts';

/**
 * Writes the files of a trial into a new folder. Their paths were the trial's to choose: in a folder that nobody else has written to, none
 * of them leads out of it. @throws CliError for a folder in which something is
 */
export async function unpackInto(folder: string, { files }: TrialBundle): Promise<void> {
  if (existsSync(folder) && (await readdir(folder)).length > 0) throw new CliError(`${folder} is not empty: name a new folder with --out`);
  for (const file of files) {
    if (file.path.split('/').some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) continue;
    const path = join(folder, file.path);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contentOf(file), { flag: 'wx' });
  }
}
