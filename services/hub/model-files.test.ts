import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HubAccess, hubAccess, ModelFiles, ModelFilesUnavailable } from './index.ts';
import { COMMIT, type FakeHub, fakeHub } from './testing/fake-hub.ts';

const MODEL = 'org/model';
const FILES = {
  'tokenizer.json': `{"model": "${'x'.repeat(200_000)}"}`,
  'tokenizer_config.json': '{"chat_template": "{{ messages }}"}',
  'generation_config.json': '{"eos_token_id": 7}',
  'model.safetensors': 'weights are not taken',
};

let root: string;
let hub: FakeHub;
let access: HubAccess;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'stillroom-hub-'));
  hub = await fakeHub(MODEL, FILES);
  access = { cacheDir: join(root, 'hub'), endpoint: hub.url, token: null, offline: false };
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await rm(root, { recursive: true });
});

const snapshot = () => join(root, 'hub', 'models--org--model', 'snapshots', COMMIT);
const failed = (found: Promise<unknown>) =>
  found.then(
    () => expect.fail('was found'),
    (error: ModelFilesUnavailable) => error,
  );
/** Every name below the cache, for what must not be left there. */
const names = () => readdirSync(root, { recursive: true }).map(String);

it.each(['hub.example.org', 'not a url', 'http://user:secret@'])(
  'an HF_ENDPOINT that is no address (%s) is said to be none',
  async (endpoint) => {
    const error = await failed(new ModelFiles({ ...access, endpoint }).find(MODEL));
    expect(error).toMatchObject({
      name: 'ModelFilesUnavailable',
      mayPass: false,
      message: expect.stringContaining('HF_ENDPOINT is no URL'),
    });
    expect(error.message).not.toContain('secret');
  },
);

describe('from the hub', () => {
  it('the tokenizer files come into the cache, in the layout of its own tools, and nothing else does', async () => {
    expect(await new ModelFiles(access).find(MODEL)).toEqual({ folder: snapshot(), commit: COMMIT, from: 'hub' });
    expect(readdirSync(snapshot()).sort()).toEqual(['generation_config.json', 'tokenizer.json', 'tokenizer_config.json']);
    expect(readFileSync(join(snapshot(), 'tokenizer.json'), 'utf8')).toBe(FILES['tokenizer.json']);
    expect(readFileSync(join(root, 'hub/models--org--model/refs/main'), 'utf8')).toBe(COMMIT);
    expect(hub.seen.filter(({ line }) => line.endsWith('model.safetensors'))).toEqual([]);
  });

  it('are there without asking the next time, also for one that must not ask', async () => {
    await new ModelFiles(access).find(MODEL);
    const { length } = hub.seen;
    expect(await new ModelFiles({ ...access, offline: true }).find(MODEL)).toEqual({ folder: snapshot(), commit: COMMIT, from: 'cache' });
    expect(await new ModelFiles(access).find(MODEL, { commit: COMMIT })).toMatchObject({ from: 'cache' });
    expect(hub.seen).toHaveLength(length);
  });

  it('nothing is used of a download by commit that stopped half way', async () => {
    hub.breakOff = 'generation_config.json';
    await failed(new ModelFiles(access).find(MODEL, { commit: COMMIT }));
    hub.breakOff = null;
    expect(await new ModelFiles(access).find(MODEL, { commit: COMMIT })).toMatchObject({ from: 'hub' });
    expect(readdirSync(snapshot())).toContain('generation_config.json');
  });

  it('a state that is asked for by its commit is fetched as that', async () => {
    await new ModelFiles(access).find(MODEL, { commit: COMMIT });
    expect(hub.seen[0]?.line).toBe(`GET /api/models/org/model/revision/${COMMIT}`);
    expect(names().some((name) => name.includes('refs'))).toBe(false);
  });

  it('the token goes along, and is in no message', async () => {
    const token = 'hf_SECRETSECRET';
    await new ModelFiles({ ...access, token }).find(MODEL);
    expect(new Set(hub.seen.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${token}`]));
    hub.status = 403;
    const error = await failed(new ModelFiles({ ...access, token, cacheDir: join(root, 'other') }).find(MODEL));
    expect(`${error.stack} ${JSON.stringify(error)} ${error.cause}`).not.toContain('SECRET');
    expect(error.message).toMatch(/does not give org\/model to us \(403, with this HF_TOKEN\)/);
  });

  it.each([
    [401, false, /does not give org\/model to us \(401, HF_TOKEN is not set\): ask for access/],
    [404, false, /has no org\/model at main/],
    [429, true, /answered 429/],
    [503, true, /answered 503/],
  ])('status %i: says so, and whether it may pass: %s', async (status, mayPass, message) => {
    hub.status = status;
    const error = await failed(new ModelFiles(access).find(MODEL));
    expect(error).toBeInstanceOf(ModelFilesUnavailable);
    expect(error).toMatchObject({ mayPass, model: MODEL });
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/nothing at .*refs\/main/);
    expect(error.message).toContain('"tokenizers": {"org/model": "./folder"} in temporal.config.json');
  });

  it.each([
    ['breaks off', 'breakOff', /could not be reached/],
    ['is not what the hub lists', 'alter', /tokenizer\.json: its content has digest [0-9a-f]{64}; the hub lists/],
  ] as const)('a download that %s leaves nothing that could be used, and the next one is whole', async (_, how, message) => {
    hub[how] = 'tokenizer.json';
    const error = await failed(new ModelFiles(access).find(MODEL));
    expect(error).toMatchObject({ mayPass: true, message: expect.stringMatching(message) });
    expect(names().filter((name) => /tokenizer\.json|incomplete|refs/.test(name))).toEqual([]);
    hub[how] = null;
    await new ModelFiles(access).find(MODEL);
    expect(readFileSync(join(snapshot(), 'tokenizer.json'), 'utf8')).toBe(FILES['tokenizer.json']);
  });

  it('a small file that was altered is found out by its name in Git', async () => {
    hub.alter = 'tokenizer_config.json';
    expect((await failed(new ModelFiles(access).find(MODEL))).message).toMatch(
      /tokenizer_config\.json: its content has digest [0-9a-f]{40};/,
    );
  });

  it('no hub there: says so, and that it may pass', async () => {
    await hub[Symbol.asyncDispose]();
    const error = await failed(new ModelFiles(access).find(MODEL));
    hub = await fakeHub(MODEL, FILES);
    expect(error).toMatchObject({ mayPass: true, message: expect.stringMatching(/could not be reached \(fetch failed: ECONNREFUSED\)/) });
  });

  it('a cache that cannot be written is not a hub that cannot be reached', async () => {
    writeFileSync(join(root, 'file'), '');
    const error = await failed(new ModelFiles({ ...access, cacheDir: join(root, 'file') }).find(MODEL));
    expect(error).toMatchObject({ mayPass: false, message: expect.stringMatching(/the cache cannot be written \(ENOTDIR: .*mkdir/) });
  });

  it('several at once, each as another worker would, all get whole files', async () => {
    const found = await Promise.all(Array.from({ length: 4 }, () => new ModelFiles(access).find(MODEL)));
    expect(new Set(found.map(({ folder }) => folder))).toEqual(new Set([snapshot()]));
    expect(readFileSync(join(snapshot(), 'tokenizer.json'), 'utf8')).toBe(FILES['tokenizer.json']);
    expect(names().filter((name) => name.includes('incomplete'))).toEqual([]);
  });
});

describe('without the hub', () => {
  const offline = (named = {}) => new ModelFiles({ ...access, offline: true }, named);

  it('a folder that the settings name comes before the cache', async () => {
    await new ModelFiles(access).find(MODEL);
    const folder = join(root, 'mine');
    mkdirSync(folder);
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
    expect(await offline({ [MODEL]: { folder } }).find(MODEL)).toEqual({ folder, from: 'settings', commit: null });
  });

  it('a model with a name of its own has the repository that the settings name', async () => {
    await new ModelFiles(access).find(MODEL);
    expect(await offline({ mine: { repo: MODEL } }).find('mine')).toMatchObject({ folder: snapshot() });
  });

  it.each([
    [
      'nothing in the cache',
      {},
      MODEL,
      /no tokenizer files of org\/model: nothing at .*refs\/main, and HF_HUB_OFFLINE is set\. Name a folder/,
    ],
    ['a name that is no repository', {}, 'qwen', /no name of a repository.*"tokenizers": \{"qwen": "org\/name"\}/],
    ['a name that leads elsewhere', {}, '../etc', /no name of a repository/],
    [
      'a folder that is not there',
      { [MODEL]: { folder: '/nowhere' } },
      MODEL,
      /\/nowhere, which "tokenizers".*is not on this worker\. Correct the name, and restart the worker/,
    ],
    ['a file instead of its folder', { [MODEL]: { folder: import.meta.filename } }, MODEL, /model-files\.test\.ts, which .*is no folder\./],
    ['a folder of something else', { [MODEL]: { folder: import.meta.dirname } }, MODEL, /lacks tokenizer\.json, tokenizer_conf/],
  ])('%s: says which model, what was looked for where, and what to do', async (_, named, model, message) => {
    const error = await failed(offline(named).find(model));
    expect(error).toMatchObject({ name: 'ModelFilesUnavailable', mayPass: false, model });
    expect(error.message).toMatch(message);
  });

  it('a cache that has weights and no tokenizer says what it lacks', async () => {
    mkdirSync(snapshot(), { recursive: true });
    mkdirSync(join(root, 'hub/models--org--model/refs'), { recursive: true });
    writeFileSync(join(root, 'hub/models--org--model/refs/main'), COMMIT);
    writeFileSync(join(snapshot(), 'tokenizer_config.json'), '{}');
    expect((await failed(offline().find(MODEL))).message).toMatch(
      /snapshots\/c+ lacks tokenizer\.json, a chat template \(chat_template\.jinja, or/,
    );
  });
});

it.each([
  [{ HF_HUB_CACHE: '/c', HF_HOME: '/h' }, '/c'],
  [{ HF_HOME: '/h' }, '/h/hub'],
  [{ XDG_CACHE_HOME: '/x' }, '/x/huggingface/hub'],
])('%j: the cache is %s', (variables, cacheDir) => expect(hubAccess(variables).cacheDir).toBe(cacheDir));

it('the rest of the variables', () => {
  expect(hubAccess({ HF_ENDPOINT: 'http://mirror/', HF_TOKEN: 'hf_x', HF_HUB_OFFLINE: '1' })).toMatchObject({
    endpoint: 'http://mirror',
    token: 'hf_x',
    offline: true,
  });
  expect(hubAccess({ HF_HUB_OFFLINE: '0', HF_TOKEN: ' ' })).toMatchObject({ endpoint: null, token: null, offline: false });
});
