import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FileObjectStore } from '../blobs/file-object-store.ts';
import { writeModelsAgent, writeSharedModelsAgent } from './agent-settings.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'settings-'));
  path = join(folder, 'settings.toml');
});
afterEach(() => rm(folder, { recursive: true }));

const TABLE = '[models.agent]\nprovider = "openai"\nmodel = "tinker://new"\n';

it('makes the file where there is none', async () => {
  await writeModelsAgent(path, TABLE);
  expect(await readFile(path, 'utf8')).toBe(TABLE);
});

it('replaces the table and keeps the rest, comments included', async () => {
  await writeFile(path, '# mine\n[chat]\nchannel = "x"\n\n[models.agent]\nmodel = "old"\nextra = 1\n\n[models.judge]\nmodel = "j"\n');
  await writeModelsAgent(path, TABLE);
  expect(await readFile(path, 'utf8')).toBe(`# mine\n[chat]\nchannel = "x"\n\n${TABLE}\n[models.judge]\nmodel = "j"\n`);
});

it.each(['models = { agent = { model = "old" } }\n', 'models.agent.model = "old"\n', 'not toml ['])(
  'leaves %j as it is and says why',
  async (text) => {
    await writeFile(path, text);
    await expect(writeModelsAgent(path, TABLE)).rejects.toThrow(/settings\.toml/);
    expect(await readFile(path, 'utf8')).toBe(text);
    expect(await readdir(folder)).toEqual(['settings.toml']);
  },
);

it('that machines share begin with one file, keep what each wrote, and are mirrored', async () => {
  const objects = new FileObjectStore(join(folder, 'objects'));
  const here = join(folder, 'here/settings.toml');
  await writeFile(path, '[chat]\nchannel = "x"\n');
  await writeSharedModelsAgent(objects, path, TABLE);
  await writeSharedModelsAgent(objects, here, TABLE.replace('new', 'newer'));
  await writeSharedModelsAgent(objects, here, TABLE.replace('new', 'newer'));
  const expected = `[chat]\nchannel = "x"\n\n${TABLE.replace('new', 'newer')}`;
  expect((await readFile(here, 'utf8')).trim()).toBe(expected.trim());
  expect(await readdir(join(folder, 'objects/settings'))).toEqual(['000001.toml', '000002.toml']);
});

it('that machines share are made by one writer at a time', async () => {
  const objects = new FileObjectStore(join(folder, 'objects'));
  const writers = Array.from({ length: 4 }, (_, i) => join(folder, `${i}/settings.toml`));
  await Promise.all(writers.map((path, i) => writeSharedModelsAgent(objects, path, TABLE.replace('new', `new-${i}`))));
  expect(await readdir(join(folder, 'objects/settings'))).toHaveLength(4);
});
