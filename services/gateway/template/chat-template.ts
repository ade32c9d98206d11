import { readTokenizerConfig, type TokenizerConfig } from './config.ts';
import { RESERVED, variablesOf } from './input.ts';
import { fromJson } from './jinja/from-json.ts';
import { type Program, RaisedByTemplate, readProgram } from './jinja/program.ts';
import { text, type Value } from './jinja/values.ts';
import { type ChatTemplate, type TemplateInput, TemplateRefusal } from './template.ts';

export type TemplateOptions = {
  /** Arguments of the template's own, e.g. `{ enable_thinking: false }`. */
  readonly kwargs?: Readonly<Record<string, unknown>>;
  /** By their names in templates, e.g. `bos_token`. */
  readonly specialTokens?: Readonly<Record<string, string>>;
  /** The moment, in milliseconds since 1970, that templates which print the date take for now. They see it in UTC. */
  readonly nowMs: number;
};

/**
 * The chat template of a model's folder, compiled once: chat_template.jinja, or what tokenizer_config.json has. When there is one of its own
 * for tools, it is taken for conversations with tools. Special tokens are the folder's unless `options` names them.
 * @throws Error naming the file when there is no template or it cannot be read.
 */
export async function loadChatTemplate(folder: string, options: TemplateOptions): Promise<ChatTemplate> {
  return chatTemplateOf(folder, await readTokenizerConfig(folder), options);
}

/** The same of a folder whose config was read. */
export function chatTemplateOf(
  folder: string,
  { chatTemplate, toolTemplate, specialTokens, file }: TokenizerConfig,
  options: TemplateOptions,
): ChatTemplate {
  if (chatTemplate === null)
    throw new Error(
      `${folder}: no chat template in chat_template.jinja or in chat_template of tokenizer_config.json; this model has none, or a file is missing`,
    );
  const whole = { ...options, specialTokens: { ...specialTokens, ...options.specialTokens } };
  try {
    const plain = compileChatTemplate(chatTemplate, whole);
    return toolTemplate === null ? plain : choosing(plain, compileChatTemplate(toolTemplate, whole));
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * A chat template that answers as Jinja2 does in Python's transformers.
 * @throws SyntaxError when the source is no template.
 */
export function compileChatTemplate(source: string, options: TemplateOptions): ChatTemplate {
  const program = readProgram(source, options.nowMs);
  const fixed = fixedVariables(options);
  return { source, render: (input) => render(program, fixed, input) };
}

function choosing(plain: ChatTemplate, withTools: ChatTemplate): ChatTemplate {
  return {
    source: `${plain.source}\n${withTools.source}`,
    render: (input) => (input.tools.length > 0 ? withTools : plain).render(input),
  };
}

function fixedVariables({ kwargs = {}, specialTokens = {} }: TemplateOptions): ReadonlyMap<string, Value> {
  const taken = RESERVED.find((name) => Object.hasOwn(kwargs, name));
  if (taken !== undefined) throw new Error(`a template's own arguments cannot have the name "${taken}"`);
  return new Map<string, Value>([
    ...Object.entries(specialTokens).map(([name, token]) => [name, text(token)] as const),
    ...Object.entries(kwargs).map(([name, value]) => [name, fromJson(JSON.stringify(value))] as const),
  ]);
}

function render(program: Program, fixed: ReadonlyMap<string, Value>, input: TemplateInput): string {
  try {
    return program.run(new Map([...fixed, ...variablesOf(input)]));
  } catch (error) {
    if (error instanceof RaisedByTemplate) throw new TemplateRefusal(error.message);
    throw new TemplateRefusal(`the chat template fails on this conversation: ${error instanceof Error ? error.message : String(error)}`);
  }
}
