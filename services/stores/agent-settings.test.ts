import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeModelsAgent } from './agent-settings.ts';

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
