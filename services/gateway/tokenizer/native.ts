import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer as Native } from 'tokenizers';
import { type BytesOfToken, byteReader } from './bytes.ts';
import { checkConfigTokens } from './config-tokens.ts';
import { readTokenizerFile } from './file.ts';
import { type AddedToken, TextTooLong, type Tokenizer } from './tokenizer.ts';

/**
 * About a million tokens. The library's regular expressions give up on a run of ten million characters of one kind, and with them ends the whole
 * process; and each million characters takes it seconds.
 */
const LONGEST_TEXT = 4_000_000;

/**
 * The tokenizer of a folder's tokenizer.json, by the native library that Python's transformers uses, too. Encoding and decoding run off the
 * event loop; loading does not, and takes 0.3 to 1.3 s and 60 to 330 MB by the size of the vocabulary.
 * @param name the model's name for messages; the folder when it is not given.
 * @throws Error naming file and field when the file is missing, not whole, or of a kind whose ids could not be trusted.
 */
export async function loadTokenizer(folder: string, name: string = folder): Promise<Tokenizer> {
  const file = join(folder, 'tokenizer.json');
  const text = await readWhole(folder, file);
  const native = parse(file, text);
  // Encoding must give every id of a text and no other, whatever the file asks for.
  native.disableTruncation();
  native.disablePadding();
  await checkConfigTokens(folder, (content) => native.tokenToId(content));
  const { addedTokens, decoders } = readTokenizerFile(file, text);
  return new NativeTokenizer(name, native, addedTokens, byteReader(file, decoders));
}

async function readWhole(folder: string, file: string): Promise<string> {
  if (!existsSync(file)) {
    const others = ['tokenizer.model', 'vocab.json', 'tiktoken.model', 'tekken.json'].filter((other) => existsSync(join(folder, other)));
    const hint =
      others.length > 0
        ? `${others.join(', ')} alone cannot be read: convert it with Python's transformers`
        : "fetch the model's tokenizer files into the folder";
    throw new Error(`${file} is missing; ${hint}`);
  }
  const text = await readFile(file, 'utf8');
  if (/^version \S+\r?\noid sha256:/.test(text))
    throw new Error(`${file} is a pointer of Git LFS, not the file itself; fetch it with \`git lfs pull\``);
  return text;
}

function parse(file: string, text: string): Native {
  try {
    return Native.fromString(text);
  } catch (error) {
    throw new Error(`${file} is not whole, or no tokenizer file (${error instanceof Error ? error.message : error}); fetch it again`);
  }
}

class NativeTokenizer implements Tokenizer {
  readonly name: string;
  readonly size: number;
  readonly addedTokens: readonly AddedToken[];
  private readonly native: Native;
  private readonly bytesOfToken: BytesOfToken;
  private readonly addedIds: ReadonlySet<number>;

  constructor(name: string, native: Native, addedTokens: readonly AddedToken[], bytesOfToken: BytesOfToken) {
    this.name = name;
    this.native = native;
    this.addedTokens = addedTokens;
    this.bytesOfToken = bytesOfToken;
    this.addedIds = new Set(addedTokens.map(({ id }) => id));
    this.size = addedTokens.reduce((size, { id }) => Math.max(size, id + 1), native.getVocabSize(true));
  }

  async encode(text: string): Promise<Int32Array> {
    if (text.length > LONGEST_TEXT) throw new TextTooLong(text.length);
    // Half a surrogate pair has no UTF-8; it is U+FFFD in every implementation.
    const encoding = await this.native.encode(text.toWellFormed(), null, { addSpecialTokens: false });
    return Int32Array.from(encoding.getIds());
  }

  async decode(ids: Int32Array): Promise<string> {
    for (const id of ids) this.mustBeKnown(id);
    return this.native.decode(Array.from(ids), false);
  }

  tokenId(content: string): number | undefined {
    return this.native.tokenToId(content) ?? undefined;
  }

  bytesOf(id: number): Uint8Array {
    this.mustBeKnown(id);
    const token = this.native.idToToken(id);
    // Vocabularies are padded here and there: such an id stands for nothing.
    return token === null ? new Uint8Array() : this.bytesOfToken(token, this.addedIds.has(id));
  }

  private mustBeKnown(id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= this.size)
      throw new RangeError(`${this.name} has the ids 0 to ${this.size - 1}; ${id} is none of them`);
  }
}
