import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const Config = z.looseObject({ added_tokens_decoder: z.record(z.string(), z.looseObject({ content: z.string() })).optional() });

/**
 * transformers adds the tokens of tokenizer_config.json to those of tokenizer.json. Where the first has one that the second lacks, the ids of
 * a text would differ, so such a folder is refused.
 * @throws Error naming file and token.
 */
export async function checkConfigTokens(folder: string, idOf: (content: string) => number | null): Promise<void> {
  const file = join(folder, 'tokenizer_config.json');
  if (!existsSync(file)) return;
  const config = Config.safeParse(parsed(await readFile(file, 'utf8')));
  if (!config.success) throw new Error(`${file} is not whole, or not what it should be; fetch it again:\n${z.prettifyError(config.error)}`);
  for (const [id, { content }] of Object.entries(config.data.added_tokens_decoder ?? {})) {
    const found = idOf(content);
    if (found !== Number(id))
      throw new Error(
        `${file}: added_tokens_decoder gives "${content}" the id ${id}, but in tokenizer.json ${found === null ? 'it is missing' : `it has ${found}`}; the two files are not of one model`,
      );
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the schema says that this is no object
  }
}
