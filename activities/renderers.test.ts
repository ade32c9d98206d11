import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRunConfig, type RunConfig } from '../core/config/index.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { type ChatRenderer, rendererFor } from '../services/gateway/index.ts';
import type { Tokenizer } from '../services/gateway/tokenizer/tokenizer.ts';
import { ModelFilesUnavailable } from '../services/hub/index.ts';
import type { RendererOrder } from './model-renderer.ts';
import { Renderers, type RenderersDeps } from './renderers.ts';

const STUDENT = 'org/student';
const TEACHER = 'org/teacher';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'stillroom-renderers-'));
});
afterEach(() => rm(root, { recursive: true }));

/** A folder with a model's files, as far as their digests matter. */
async function folder(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(join(root, name), { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(root, name, file), text);
  return join(root, name);
}
const FILES = { 'tokenizer.json': '{}', 'tokenizer_config.json': '{"chat_template": "t"}' };

function config(names: string, student: string): RunConfig {
  const text = `[student]\nbase_model = "${student}"\n[teacher]\nmodel = "${TEACHER}"\n[harbor]\njob_template = "j"\n[rollout.renderers]\n${names}`;
  const parsed = parseRunConfig(text, 'run.toml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.config;
}
const runOf = (names = '', runId = 'run', student: string = STUDENT) => ({ runId, config: config(names, student) });

/** A worker; it notes what it loads. */
function worker(folders: Readonly<Record<string, string>>, objects = new MemoryObjects(), deps: Partial<RenderersDeps> = {}) {
  const loaded: RendererOrder[] = [];
  const [asked, tokenizers]: [(string | null | undefined)[], string[]] = [[], []];
  const find: RenderersDeps['files']['find'] = async (model, { commit } = {}) => {
    asked.push(commit);
    const folder = folders[model];
    if (folder === undefined) throw new ModelFilesUnavailable(model, `no files of ${model}`);
    return { folder, from: 'cache', commit: 'c1' };
  };
  const load = async (order: RendererOrder): Promise<ChatRenderer> => {
    loaded.push(order);
    return { ...rendererFor({ name: 'stillroom_tiny' }), name: `${order.name}` };
  };
  const tokenizerIn = async (folder: string) => {
    tokenizers.push(folder);
    return { name: folder } as Tokenizer;
  };
  return {
    renderers: new Renderers({ files: { find }, objects, load, tokenizerIn, now: () => 5, ...deps }),
    loaded,
    asked,
    tokenizers,
    folders,
  };
}

describe('which renderer a model gets', () => {
  it.each([
    ['', { families: null, switches: {}, retain: 'all' }],
    ['"org/student" = "qwen3"', { families: ['hermes'], switches: {}, retain: 'all' }],
    ['"org/student" = "qwen3_disable_thinking"', { families: ['hermes'], switches: { enable_thinking: false }, retain: 'all' }],
    ['"org/student" = "gpt_oss_medium_reasoning"', { families: ['harmony'], switches: { reasoning_effort: 'medium' }, retain: 'all' }],
    ['"org/student" = "wmo/qwen3_5_verbatim"', { families: ['function_tags'], switches: {}, retain: 'all' }],
    ['"org/student" = "wmo/qwen3_5_strip_history"', { families: ['function_tags'], switches: {}, retain: 'template' }],
  ])('named %s: its own template with %j', async (names, choice) => {
    const { renderers, loaded } = worker({ [STUDENT]: await folder('s', FILES) });
    await renderers.of(runOf(names), STUDENT);
    expect(loaded).toEqual([expect.objectContaining({ model: STUDENT, folder: join(root, 's'), choice, nowMs: 5 })]);
  });

  it('the tiny models have no files, and one renderer, named or not', async () => {
    const { renderers, asked } = worker({});
    const [student, teacher] = ['stillroom/tiny-student', 'stillroom/tiny-teacher'];
    expect((await renderers.of(runOf(`"${student}" = "stillroom_tiny"`, 'run', student), student)).name).toBe('stillroom_tiny');
    expect((await renderers.of(runOf(), teacher)).name).toBe('stillroom_tiny');
    await expect(renderers.of(runOf(`"${student}" = "qwen3"`, 'other', student), student)).rejects.toThrow(
      /tiny-student the renderer "qwen3", but the embedded tiny models have "stillroom_tiny" alone/,
    );
    expect(asked).toEqual([]);
  });

  it("no other model has the tiny models' renderer", async () => {
    const { renderers } = worker({});
    await expect(renderers.of(runOf(`"${STUDENT}" = "stillroom_tiny"`), STUDENT)).rejects.toThrow(
      /the renderer "stillroom_tiny", which is that of the embedded tiny models alone/,
    );
  });

  it('role_colon is refused by name', async () => {
    const { renderers } = worker({});
    await expect(renderers.of(runOf(`"${STUDENT}" = "role_colon"`), STUDENT)).rejects.toThrow(
      /no renderer "role_colon".*rollout\.renderers/,
    );
  });
});

describe('what a worker loads', () => {
  it('once for all who ask at once, and for all trials after them', async () => {
    const { renderers, loaded } = worker({ [STUDENT]: await folder('s', FILES) });
    const all = await Promise.all(Array.from({ length: 5 }, () => renderers.of(runOf(), STUDENT)));
    expect(new Set([...all, await renderers.of(runOf(), STUDENT)]).size).toBe(1);
    expect(loaded).toHaveLength(1);
  });

  it('one tokenizer for student and teacher of the same files, of any run; a renderer for each date', async () => {
    const folders = { [STUDENT]: await folder('s', FILES), [TEACHER]: await folder('t', FILES) };
    let nowMs = 1;
    const { renderers, loaded, tokenizers } = worker(folders, new MemoryObjects(), { now: () => nowMs });
    for (const model of [STUDENT, TEACHER]) await renderers.of(runOf('', 'one'), model);
    nowMs = 2;
    for (const model of [STUDENT, TEACHER]) await renderers.of(runOf('', 'two'), model);
    expect(tokenizers).toHaveLength(1);
    expect(loaded.map(({ nowMs }) => nowMs)).toEqual([1, 1, 2, 2]);
  });

  it('again after it failed', async () => {
    const folders: Record<string, string> = {};
    const { renderers } = worker(folders);
    await expect(renderers.of(runOf(), STUDENT)).rejects.toThrow(`no files of ${STUDENT}`);
    folders[STUDENT] = await folder('s', FILES);
    expect(await renderers.of(runOf(), STUDENT)).toBeDefined();
  });
});

describe('what a run began with', () => {
  it('is its date, too, on every worker and at any later time', async () => {
    const objects = new MemoryObjects();
    const folders = { [STUDENT]: await folder('s', FILES), [TEACHER]: await folder('t', FILES) };
    await worker(folders, objects, { now: () => 1 }).renderers.of(runOf(), STUDENT);
    const later = worker(folders, objects, { now: () => 2 });
    for (const model of [STUDENT, TEACHER]) await later.renderers.of(runOf(), model);
    expect(later.loaded.map(({ nowMs }) => nowMs)).toEqual([1, 1]);
  });

  it('is asked for by its commit, and used where it is the same', async () => {
    const objects = new MemoryObjects();
    await worker({ [STUDENT]: await folder('s', FILES) }, objects).renderers.of(runOf(), STUDENT);
    const other = worker({ [STUDENT]: await folder('elsewhere', FILES) }, objects);
    expect(await other.renderers.of(runOf(), STUDENT)).toBeDefined();
    expect(other.asked).toEqual(['c1']);
  });

  it.each([
    [
      'another tokenizer',
      { ...FILES, 'tokenizer.json': '{"other": 1}' },
      /tokenizer\.json \(sha256 [0-9a-f]{12} here, sha256 44136fa355b3 there\)/,
    ],
    [
      'a template file of its own',
      { ...FILES, 'chat_template.jinja': 'x' },
      /chat_template\.jinja \(sha256 [0-9a-f]{12} here, none there\)/,
    ],
  ])('is not mixed with %s of another worker: it refuses, and says what to do', async (_, files, told) => {
    const objects = new MemoryObjects();
    await worker({ [STUDENT]: await folder('s', FILES) }, objects).renderers.of(runOf(), STUDENT);
    const other = worker({ [STUDENT]: await folder('elsewhere', files) }, objects);
    const refused = other.renderers.of(runOf(), STUDENT);
    await expect(refused).rejects.toMatchObject({ name: 'TokenizerChanged', message: expect.stringMatching(told) });
    await expect(refused).rejects.toThrow(
      /org\/student in .*elsewhere on worker .* are not those that the run began with.*commit c1.*put the same ones there/,
    );
    expect(other.loaded).toEqual([]);
    expect(await other.renderers.of(runOf('', 'later'), STUDENT)).toBeDefined();
  });
});
