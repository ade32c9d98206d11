import { z } from 'zod';
import { memberTexts } from '../json-text.ts';
import type { AddedToken } from './tokenizer.ts';

/** What is read of tokenizer.json besides what the native library reads itself. */
export type TokenizerFile = {
  readonly addedTokens: readonly AddedToken[];
  /** The steps that make text of tokens, a sequence's one by one. */
  readonly decoders: readonly Decoder[];
};

const AddedTokens = z.array(
  z.object({
    id: z.int().nonnegative(),
    content: z.string().min(1),
    special: z.boolean(),
    lstrip: z.boolean(),
    rstrip: z.boolean(),
    normalized: z.boolean(),
  }),
);

const Step = z.looseObject({
  type: z.string(),
  pattern: z.looseObject({ String: z.string().optional() }).optional(),
  content: z.string().optional(),
});
const Decoders = z
  .union([z.looseObject({ type: z.literal('Sequence'), decoders: z.array(Step) }), Step])
  .transform((decoder) =>
    'decoders' in decoder && Array.isArray(decoder.decoders)
      ? (decoder.decoders as z.infer<typeof Step>[])
      : [decoder as z.infer<typeof Step>],
  );

export type Decoder = z.infer<typeof Step>;

/** The vocabulary and the merges are most of the file, and would be hundreds of megabytes of objects; the native library has them. */
export function readTokenizerFile(file: string, text: string): TokenizerFile {
  const members = memberTexts(text, ['added_tokens', 'decoder']);
  return {
    addedTokens: field(file, 'added_tokens', AddedTokens, members),
    decoders: field(file, 'decoder', Decoders, members),
  };
}

function field<T>(file: string, name: string, schema: z.ZodType<T>, members: ReadonlyMap<string, string>): T {
  const json = members.get(name);
  const read = schema.safeParse(json === undefined ? undefined : JSON.parse(json));
  if (read.success) return read.data;
  throw new Error(`${file}: ${name} is not what can be used here:\n${z.prettifyError(read.error)}`);
}
