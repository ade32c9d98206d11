import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { appSettingsJsonSchema, readAppSettings } from './app-settings.ts';
import { PROJECT_ROOT, readEnvironment } from './environment.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'stillroom-settings-'));
  mkdirSync(path.join(root, '.stillroom'));
});
afterEach(() => rmSync(root, { recursive: true }));

describe('temporal.config.json', () => {
  const write = (text: string) => writeFileSync(path.join(root, 'temporal.config.json'), text);

  it('may be absent, and then says what the committed one says', () => {
    const committed: unknown = JSON.parse(readFileSync(path.join(PROJECT_ROOT, 'temporal.config.json'), 'utf8'));
    const defaults = readAppSettings(root);
    write(JSON.stringify(committed));
    expect(readAppSettings(root)).toEqual(defaults);
  });

  it('one key changes only that one; paths become absolute', () => {
    write('{"temporal": {"port": 17233}, "blobStore": "b"}');
    const settings = readAppSettings(root);
    expect(settings.temporal).toEqual({ port: 17233, uiPort: 8233, dbFile: path.join(root, '.stillroom/temporal.db') });
    expect(settings.blobStore).toEqual({ kind: 'folder', path: path.join(root, 'b') });
    expect(settings.taskQueues.control).toBe('stillroom');
  });

  it.each([
    ['{"temporal": {"prot": 1}}', /temporal\.config\.json:[\s\S]*prot[\s\S]*temporal/],
    ['{"temporal": {"port": 70000}}', /temporal\.port/],
    [
      '{"workers": {"rolloutSlots": 0}, "trainer": {"port": "x"}}',
      /workers\.rolloutSlots[\s\S]*trainer\.port|trainer\.port[\s\S]*workers\.rolloutSlots/,
    ],
    [
      '{"harbor": {"passEnv": ["GRADER_KEY", "TINKER_API_KEY"]}}',
      /is the worker's alone and never reaches a runner[\s\S]*harbor\.passEnv\[1\]/,
    ],
    ['{"harbor": {"passEnv": ["GRADER_KEY=1"]}}', /must be the name of an environment variable[\s\S]*harbor\.passEnv\[0\]/],
    ['{', /temporal\.config\.json is not JSON/],
  ])('%s is refused by name', (text, message) => {
    write(text);
    expect(() => readAppSettings(root)).toThrow(message);
  });

  it.each([
    ['"s3://lab"', { bucket: 'lab', prefix: '' }],
    ['"s3://lab/team/a/"', { bucket: 'lab', prefix: 'team/a' }],
    [
      '"s3://lab/x", "blobStoreEndpoint": "http://127.0.0.1:9000", "blobStoreRegion": "eu-west-1"',
      { prefix: 'x', endpoint: 'http://127.0.0.1:9000', region: 'eu-west-1' },
    ],
  ])('a blobStore of %s is a bucket', (value, expected) => {
    write(`{"blobStore": ${value}}`);
    expect(readAppSettings(root).blobStore).toEqual({ kind: 's3', bucket: 'lab', endpoint: null, region: null, ...expected });
  });

  it.each([
    ['{"blobStore": "s3://"}', /must be a folder, or s3:\/\/BUCKET[\s\S]*blobStore/],
    ['{"blobStore": "s3:/lab"}', /must be a folder, or s3:\/\/BUCKET/],
    ['{"blobStore": "S3://lab"}', /must be a folder, or s3:\/\/BUCKET/],
    ['{"blobStore": "s3://lab/a b"}', /must be a folder, or s3:\/\/BUCKET/],
    ['{"blobStore": "s3://lab/../x"}', /must be a folder, or s3:\/\/BUCKET/],
    ['{"blobStore": "https://lab"}', /must be a folder, or s3:\/\/BUCKET/],
    ['{"blobStore": "s3://lab", "blobStoreEndpoint": "lab:9000"}', /blobStoreEndpoint/],
    [
      '{"blobStore": "s3://lab", "blobStoreEndpoint": "http://me:secret@lab:9000"}',
      /must not hold a user or password[\s\S]*blobStoreEndpoint/,
    ],
    ['{"blobStoreEndpoint": "http://127.0.0.1:9000"}', /only for a blobStore of the form s3:\/\/BUCKET[\s\S]*blobStoreEndpoint/],
    ['{"blobStore": "b", "blobStoreRegion": "eu"}', /only for a blobStore of the form s3:\/\/BUCKET[\s\S]*blobStoreRegion/],
    ['{"blobStore": "s3://lab", "blobStoreKey": "secret"}', /blobStoreKey/],
  ])('%s is refused by name', (text, message) => {
    write(text);
    expect(() => readAppSettings(root)).toThrow(message);
  });

  it('says where the tokenizer of a model comes from: a folder of the project, or a repository', () => {
    write('{"tokenizers": {"a/b": "./models/b", "c": "org/name@v1", "d": "/models/d"}}');
    expect(readAppSettings(root).tokenizers).toEqual({
      'a/b': { folder: path.join(root, 'models/b') },
      c: { repo: 'org/name@v1' },
      d: { folder: '/models/d' },
    });
    mkdirSync(path.join(root, 'models/b'), { recursive: true });
    write('{"tokenizers": {"a/b": "models/b"}}');
    expect(() => readAppSettings(root)).toThrow(/a\/b: "models\/b" would be a repository.*write "\.\/models\/b" for the folder/);
    write('{"tokenizers": {"a/b": "models"}}');
    expect(() => readAppSettings(root)).toThrow(/must be a folder \(\.\/… or \/…\), or a repository[\s\S]*tokenizers/);
  });

  it.each(['gw.test', 'https://me:secret@gw.test', 'https://gw.test/?a=1'])('a public URL is not %s', (publicUrl) => {
    write(JSON.stringify({ gateway: { publicUrl } }));
    expect(() => readAppSettings(root)).toThrow(/gateway\.publicUrl/);
    expect(() => readAppSettings(root)).not.toThrow(/secret/);
  });

  it('has its JSON Schema beside it', () => {
    expect(JSON.parse(readFileSync(path.join(PROJECT_ROOT, 'temporal.config.schema.json'), 'utf8'))).toEqual(appSettingsJsonSchema());
  });
});

describe('what set-up found', () => {
  const found = { node: '/n', python: '/p', temporal: '/t', temporalTestServer: '/s', bwrap: null };
  const write = (value: unknown) => writeFileSync(path.join(root, '.stillroom', 'setup.json'), JSON.stringify(value));

  it('is read, and isolated is what is not asked to be plain', () => {
    write(found);
    expect(readEnvironment(root, {})).toEqual({ ...found, sandbox: 'bwrap' });
    expect(readEnvironment(root, { STILLROOM_SANDBOX: 'plain' }).sandbox).toBe('plain');
    expect(() => readEnvironment(root, { STILLROOM_SANDBOX: 'none' })).toThrow(/STILLROOM_SANDBOX must be/);
  });

  it('is missed by name, with exit code 2', () => {
    expect(() => readEnvironment(root, {})).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringMatching(/npm run setup/) }),
    );
    write({ ...found, python: 3 });
    expect(() => readEnvironment(root, {})).toThrow(/python/);
  });
});
