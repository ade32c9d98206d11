import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** What a model's folder says about its chat besides the vocabulary. */
export type TokenizerConfig = {
  /** Null when the folder has none. */
  readonly chatTemplate: string | null;
  /** The template for conversations with tools, where a model has one of its own. */
  readonly toolTemplate: string | null;
  /** The file that the templates came from, for error messages. */
  readonly file: string;
  /** Texts by their names in templates, e.g. `bos_token`. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Ids that end a generation, of generation_config.json; empty when it names none. */
  readonly eosTokenIds: readonly number[];
};

const Token = z.union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)]);
const Config = z.looseObject({
  chat_template: z.union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))]).nullish(),
});
const GenerationConfig = z.looseObject({ eos_token_id: z.union([z.int(), z.array(z.int())]).nullish() });

/**
 * Reads tokenizer_config.json, chat_template.jinja and generation_config.json of a folder, each where it is there.
 * @throws Error naming file and field when one is not what it should be.
 */
export async function readTokenizerConfig(folder: string): Promise<TokenizerConfig> {
  const configFile = join(folder, 'tokenizer_config.json');
  const templateFile = join(folder, 'chat_template.jinja');
  const config = await readJson(configFile, Config);
  const ownFile = await readText(templateFile);
  const ownToolFile = await readText(join(folder, 'additional_chat_templates', 'tool_use.jinja'));
  const generation = await readJson(join(folder, 'generation_config.json'), GenerationConfig);
  const named = templatesOf(config?.chat_template ?? null, configFile);
  return {
    chatTemplate: ownFile ?? named.plain,
    toolTemplate: ownFile === null ? named.withTools : ownToolFile,
    file: ownFile === null ? configFile : templateFile,
    specialTokens: specialTokensOf(config ?? {}, configFile),
    eosTokenIds: [generation?.eos_token_id ?? []].flat(),
  };
}

function templatesOf(given: z.infer<typeof Config>['chat_template'], file: string): { plain: string | null; withTools: string | null } {
  if (!Array.isArray(given)) return { plain: given ?? null, withTools: null };
  const find = (name: string) => given.find((entry) => entry.name === name)?.template ?? null;
  const plain = find('default');
  if (plain === null)
    throw new Error(`${file}: chat_template names ${given.map(({ name }) => `"${name}"`).join(', ')}, but none of them is "default"`);
  return { plain, withTools: find('tool_use') };
}

/** Every `…_token`, as a text or as an object with its content; null says that there is none. */
function specialTokensOf(config: Readonly<Record<string, unknown>>, file: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, given] of Object.entries(config)) {
    if (!name.endsWith('_token') || given === null || typeof given === 'boolean') continue;
    const token = Token.safeParse(given);
    if (!token.success) throw new Error(`${file}: ${name} is neither a text nor an object with content`);
    found[name] = token.data;
  }
  return found;
}

async function readJson<T>(file: string, schema: z.ZodType<T>): Promise<T | null> {
  const text = await readText(file);
  if (text === null) return null;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file}: not whole, or no JSON (${error instanceof Error ? error.message : error}); fetch it again`);
  }
  const read = schema.safeParse(json);
  if (!read.success) throw new Error(`${file}:\n${z.prettifyError(read.error)}`);
  return read.data;
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
