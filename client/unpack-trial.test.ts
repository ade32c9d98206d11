import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { unpackInto } from './unpack-trial.ts';

it('unpacks what is inside the folder, as it was, and only into a new one', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'stillroom-unpack-'));
  try {
    const file = (path: string, content: string, encoding: 'utf8' | 'base64' = 'utf8') => ({
      path,
      content,
      encoding,
      size: 1,
      leftOut: null,
    });
    const files = [
      file('a/b.txt', 'text'),
      file('odd', 'AP8=', 'base64'),
      file('../out', 'x'),
      file('/abs', 'x'),
      file('a/../../out', 'x'),
    ];
    await unpackInto(join(dir, 'in/it'), { version: 1, files, leftOut: 0 });
    expect((await readdir(dir, { recursive: true })).sort()).toEqual(['in', 'in/it', 'in/it/a', 'in/it/a/b.txt', 'in/it/odd']);
    expect(await readFile(join(dir, 'in/it/odd'))).toEqual(Buffer.from([0, 255]));
    await expect(unpackInto(join(dir, 'in/it'), { version: 1, files, leftOut: 0 })).rejects.toThrow(/is not empty: name a new folder/);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
