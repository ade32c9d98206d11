import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pc from 'picocolors';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findAgent } from '../core/run/agents.ts';
import { StoredHarness } from '../core/run/harness-document.ts';
import { HarnessStore } from '../services/stores/harness-store.ts';
import { addHarness, hashOf, neededVersion, readHarnessFile, storedNames } from './harnesses.ts';
import { addedText, agentText, harnessTable } from './view/harness-text.ts';

let folder: string;
let store: HarnessStore<StoredHarness>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'harnesses-'));
  store = new HarnessStore(join(folder, 'harnesses'), StoredHarness);
});
afterEach(() => rm(folder, { recursive: true }));

async function file(text: string, name = 'agent.json'): Promise<string> {
  await writeFile(join(folder, name), text);
  return join(folder, name);
}
const read = async (...args: Parameters<typeof file>) => readHarnessFile(await file(...args));
const found = (given: string) => findAgent(given, (name, ref) => store.load(name, ref));

describe('adding documents', () => {
  it('numbers them, and a name alone means the newest until a champion is named', async () => {
    const first = await addHarness(store, 'mine', await read('{"runtime": "turn", "prompt": "Be brief."}'), null);
    const second = await addHarness(store, 'mine', await read('runtime = "terminus-2"\n', 'agent.toml'), 'champion');
    const third = await addHarness(store, 'mine', await read('{"runtime": "turn"}'), null);
    expect([first, second, third].map(({ version, isNew, meant }) => [version, isNew, meant])).toEqual([
      [1, true, 1],
      [2, true, 2],
      [3, true, 2],
    ]);
    expect(JSON.parse(await readFile(join(first.path, 'doc.json'), 'utf8'))).toMatchObject({ runtime: 'turn', prompt: 'Be brief.' });
    expect(addedText(first, null)).toMatch(/^mine v1 is kept in/);
    expect(addedText(second, 'champion')).toContain('mine@champion is now v2');
    expect(addedText(third, null)).toContain('"mine" still means v2, its champion; "mine@v3" names');
    expect(await found('mine')).toMatchObject({ ref: 'v2', runtime: 'terminus-2' });
    expect(await found('mine@v1')).toMatchObject({ ref: 'v1', runtime: 'turn', prompt: 'Be brief.' });
    expect(
      harnessTable(await storedNames(store), pc.createColors(false))
        .split('\n')
        .at(-1)
        ?.split(/ +/),
    ).toEqual(['mine', '3', 'v2', 'terminus-2', 'champion=v2']);
  });

  it('a document that is there already makes no version, but may get an alias', async () => {
    const document = await read('{"runtime": "turn"}');
    await addHarness(store, 'mine', document, null);
    const again = await addHarness(store, 'mine', await read('runtime = "turn"\nkwargs = {}\n', 'same.toml'), 'best');
    expect(again).toMatchObject({ version: 1, isNew: false });
    expect(addedText(again, 'best')).toBe(
      'mine v1 already is this document: no version was made\nmine@best is now v1\na run\'s agent "mine" means v1',
    );
  });

  it.each(['pi', 'turn'])('nothing is stored over %s', async (name) => {
    await expect(addHarness(store, name, await read('{"runtime": "turn"}'), null)).rejects.toMatchObject({ exitCode: 2 });
    expect(await store.versions.names()).toEqual([]);
  });
});

it('shows an agent as a run pins it, whatever its document’s order', async () => {
  const [one, other] = ['{"tmux_pane_width": 90, "parser_name": "xml"}', '{"parser_name": "xml", "tmux_pane_width": 90}'];
  await addHarness(store, 'one', await read(`{"runtime": "pi", "kwargs": ${one}}`), null);
  await addHarness(store, 'other', await read(`{"kwargs": ${other}, "runtime": "terminus-2"}`), null);
  const agents = [await found('one'), await found('other')];
  expect(new Set(agents.map(hashOf)).size).toBe(1);
  expect(hashOf(await found('pi'))).not.toBe(hashOf(agents[0] as (typeof agents)[number]));
  expect(agentText({ ...(await found('one')), hash: 'h', aliases: ['best'] })).toBe(
    'agent    one@v1 (best)\nruntime  terminus-2\nhash     h\nkwargs\n  tmux_pane_width = 90\n  parser_name = "xml"',
  );
  expect(agentText({ ...(await found('turn')), hash: 'h', aliases: [] })).toMatch(/^agent {4}turn, built in$/m);
});

it('an alias is moved to a version that is there, and to no other', async () => {
  for (const runtime of ['turn', 'pi']) await addHarness(store, 'mine', await read(`{"runtime": "${runtime}"}`), null);
  await store.versions.setAlias('mine', 'best', neededVersion('v1'));
  expect(await found('mine@best')).toMatchObject({ ref: 'v1' });
  await expect(store.versions.setAlias('mine', 'best', neededVersion('7'))).rejects.toThrow('no version 7');
  expect(() => neededVersion('newest')).toThrow('write v3 or 3');
});

describe('a file that is wrong is refused, exit code 2, with file and field', () => {
  it.each([
    ['half a file', '{"runtime":', 'a.json', /a\.json: not JSON/],
    ['half a TOML file', 'runtime =', 'a.toml', /a\.toml: not TOML/],
    ['no object', '[]', 'a.json', /\(whole file\): must be an object/],
    ['no runtime', '{}', 'a.json', /a\.json: runtime: must be one of turn, terminus-2, import, installed/],
    ['a foreign runtime', '{"runtime": "kit"}', 'a.json', /runtime: must be one of/],
    ['an unknown field', '{"runtime": "turn", "promt": ""}', 'a.json', /promt: is not a known field/],
    ['a class without module', '{"runtime": "import", "import_path": "Agent"}', 'a.json', /import_path: must look like module\.path:Class/],
    ['no class', '{"runtime": "import"}', 'a.json', /import_path: is missing/],
    ['an agent of nobody', '{"runtime": "installed", "agent": "swe"}', 'a.json', /agent: .*did you mean mini-swe-agent or swe-agent\?/],
    ['an agent that is not installed', '{"runtime": "installed", "agent": "oracle"}', 'a.json', /agent: harbor installs no agent "oracle"/],
    ['a kwarg of ours', '{"runtime": "pi", "kwargs": {"temperature": 0}}', 'a.json', /kwargs\.temperature: is set by Stillroom/],
    [
      'an unknown kwarg',
      '{"runtime": "turn", "kwargs": {"stopword": "x"}}',
      'a.json',
      /kwargs\.stopword: is not known to turn; it takes stop_word/,
    ],
    [
      'a secret by its name',
      '{"runtime": "import", "import_path": "a:B", "kwargs": {"x": {"api_key": "abc"}}}',
      'a.json',
      /kwargs\.x\.api_key: holds a/,
    ],
    ['a value of another kind', '{"runtime": "pi", "kwargs": {"parser_name": "yaml"}}', 'a.json', /kwargs\.parser_name: .*"json"/],
    ['a secret variable', '{"runtime": "turn", "env": {"MY_KEY": "abc"}}', 'a.json', /env\.MY_KEY: holds a secret/],
    ['a secret by its value', '{"runtime": "turn", "env": {"OTHER": "sk-0123456789abcdef"}}', 'a.json', /env\.OTHER: holds a secret/],
    [
      'a key in the prompt',
      '{"runtime": "turn", "prompt": "use ghp_0123456789abcdefghij"}',
      'a.json',
      /prompt: holds what looks like a key/,
    ],
    [
      'a placeholder of nobody',
      `{"runtime": "installed", "agent": "aider", "env": {"A": "\${HOME}"}}`,
      'a.json',
      /env\.A: \$\{HOME\} is filled in by nobody/,
    ],
    [
      'a placeholder for turn',
      `{"runtime": "turn", "env": {"A": "\${STILLROOM_API_BASE}"}}`,
      'a.json',
      /env\.A: .* is for the runtimes import and installed/,
    ],
    ['a variable without a name', '{"runtime": "turn", "env": {"A B": "x"}}', 'a.json', /env\.A B: /],
  ])('%s', async (_, text, name, message) => {
    await expect(read(text, name)).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
  });

  it('all at once', async () => {
    const reading = read('{"runtime": "turn", "kwargs": {"model": "m", "max_turns": 1}}');
    await expect(reading).rejects.toThrow(/kwargs\.model: .*\n.*kwargs\.max_turns: /);
  });
});

it('names that only look like those of secrets are taken for options', async () => {
  const kwargs = { sort_key: 'a', stop_token: 'b', max_tokens_key: 'c' };
  expect(await read(JSON.stringify({ runtime: 'import', import_path: 'a:B', kwargs }))).toMatchObject({ kwargs });
});

it('placeholders are taken where somebody fills them in', async () => {
  const env = { OPENAI_BASE_URL: `\${STILLROOM_API_BASE}`, OPENAI_API_KEY: `\${STILLROOM_GATEWAY_KEY}` };
  expect(await read(JSON.stringify({ runtime: 'installed', agent: 'aider', env }))).toMatchObject({ env });
});
