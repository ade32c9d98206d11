import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { byteLevelFile, pieceFile } from '../testing/made-tokenizers.ts';
import { loadTokenizer } from './native.ts';
import { TextTooLong } from './tokenizer.ts';

let root: string;
let folders = 0;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'stillroom-tokenizer-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = join(root, String(folders++));
  mkdirSync(folder);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const load = (file: object) => loadTokenizer(folderWith({ 'tokenizer.json': JSON.stringify(file) }), 'made');
const utf8 = (text: string) => new TextEncoder().encode(text);

test('a text and its ids, with the text of an added token as that token', async () => {
  const tokenizer = await load(byteLevelFile());
  expect([...(await tokenizer.encode('ab<|end|>é'))]).toEqual([256, 257, 0xc3, 0xa9]);
  expect(await tokenizer.decode(Int32Array.of(256, 257, 0xc3, 0xa9))).toBe('ab<|end|>é');
  expect(tokenizer.size).toBe(258);
  expect(tokenizer.tokenId('<|end|>')).toBe(257);
  expect(tokenizer.tokenId('<|start|>')).toBeUndefined();
  expect(tokenizer.addedTokens).toEqual([{ id: 257, content: '<|end|>', special: true, lstrip: false, rstrip: false, normalized: false }]);
});

test('half a surrogate pair becomes U+FFFD', async () => {
  const tokenizer = await load(byteLevelFile());
  expect(await tokenizer.decode(await tokenizer.encode('\ud800!'))).toBe('\ufffd!');
});

test('a text that is longer than any context is refused; the library would end the process on some', async () => {
  const tokenizer = await load(byteLevelFile());
  await expect(tokenizer.encode(' '.repeat(4_000_001))).rejects.toThrow(new TextTooLong(4_000_001));
});

test('a file that asks for a shortened or filled-up text is not obeyed', async () => {
  const truncation = { direction: 'Right', max_length: 2, strategy: 'LongestFirst', stride: 0 };
  const padding = { strategy: { Fixed: 9 }, direction: 'Right', pad_to_multiple_of: null, pad_id: 0, pad_type_id: 0, pad_token: 'x' };
  const tokenizer = await load({ ...byteLevelFile(), truncation, padding });
  expect([...(await tokenizer.encode('xyz'))]).toEqual([0x78, 0x79, 0x7a]);
});

test('nothing is put before a text, even when the file would', async () => {
  const special = { '<|end|>': { id: '<|end|>', ids: [257], tokens: ['<|end|>'] } };
  const single = [{ SpecialToken: { id: '<|end|>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }];
  const post_processor = { type: 'TemplateProcessing', single, pair: single, special_tokens: special };
  const tokenizer = await load({ ...byteLevelFile(), post_processor });
  expect([...(await tokenizer.encode('x'))]).toEqual([0x78]);
});

test('byte-level: each id has its exact bytes, parts of a character too', async () => {
  const tokenizer = await load(byteLevelFile());
  for (let byte = 0; byte < 256; byte++) expect([...tokenizer.bytesOf(byte)]).toEqual([byte]);
  expect(tokenizer.bytesOf(256)).toEqual(utf8('ab'));
  expect(tokenizer.bytesOf(257)).toEqual(utf8('<|end|>'));
});

test('after SentencePiece: the sign for a space is a space, in added tokens too, and byte tokens are bytes', async () => {
  const tokenizer = await load(pieceFile());
  const ids = await tokenizer.encode('a é<▁>');
  expect(Buffer.concat([...ids].map((id) => tokenizer.bytesOf(id))).toString()).toBe('a é< >');
  expect(await tokenizer.decode(ids)).toBe('a é< >');
  expect([...tokenizer.bytesOf(tokenizer.tokenId('<0xC3>') ?? -1)]).toEqual([0xc3]);
  expect(tokenizer.bytesOf(tokenizer.tokenId('▁a') ?? -1)).toEqual(utf8(' a'));
});

test('an id outside the vocabulary is an error, not an empty text', async () => {
  const tokenizer = await load(byteLevelFile());
  expect(() => tokenizer.bytesOf(258)).toThrow('made has the ids 0 to 257; 258 is none of them');
  await expect(tokenizer.decode(Int32Array.of(-1))).rejects.toThrow('-1 is none of them');
});

test.each([
  ['missing', {}, 'tokenizer.json is missing; fetch the model'],
  ['missing beside another kind', { 'tokenizer.model': '' }, 'tokenizer.model alone cannot be read'],
  ['half', { 'tokenizer.json': JSON.stringify(byteLevelFile()).slice(0, 2_000) }, 'tokenizer.json is not whole'],
  ['a pointer', { 'tokenizer.json': 'version spec\noid sha256:00\nsize 1\n' }, 'tokenizer.json is a pointer of Git LFS'],
  ['no tokenizer', { 'tokenizer.json': '{"model": 1}' }, 'tokenizer.json is not whole, or no tokenizer file'],
  [
    'without a decoder',
    { 'tokenizer.json': JSON.stringify({ ...byteLevelFile(), decoder: null }) },
    'tokenizer.json: decoder is not what can be used',
  ],
  [
    'with an unknown decoder',
    { 'tokenizer.json': JSON.stringify({ ...byteLevelFile(), decoder: { type: 'WordPiece', prefix: '##', cleanup: true } }) },
    'tokenizer.json: decoder is of type WordPiece',
  ],
  [
    'not of one model with its config',
    {
      'tokenizer.json': JSON.stringify(byteLevelFile()),
      'tokenizer_config.json': JSON.stringify({ added_tokens_decoder: { 258: { content: '<|more|>' } } }),
    },
    'added_tokens_decoder gives "<|more|>" the id 258, but in tokenizer.json it is missing',
  ],
  [
    'whole beside half a config',
    { 'tokenizer.json': JSON.stringify(byteLevelFile()), 'tokenizer_config.json': '{"added' },
    'tokenizer_config.json is not whole',
  ],
])('a file that is %s is refused by name', async (_, files, message) => {
  await expect(loadTokenizer(folderWith(files as Record<string, string>))).rejects.toThrow(message);
});
