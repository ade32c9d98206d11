import type { Family } from '../families/family.ts';
import { familyOf } from '../families/family-of.ts';
import { escaped, piecesOf, textOf } from '../families/pieces.ts';
import type { ChatRenderer } from '../renderer.ts';
import type { ChatTemplate } from '../template/template.ts';
import type { AddedToken, Tokenizer } from '../tokenizer/tokenizer.ts';
import { inForm } from './chat-forms.ts';
import { habitsOf } from './chat-probe.ts';
import { toolsRefusal } from './chat-read-back.ts';
import { extend, type Retain } from './chat-splice.ts';
import { turnReader } from './chat-turn.ts';
import { fingerprintOf } from './fingerprint.ts';

export type ChatRendererOptions = {
  /** Shown in errors. */
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  /** Recognised from template and tokenizer when it is not given. */
  readonly family?: Family;
  /** Default `all`: what a model reasoned stays in its prompts, so that an episode stays one sequence. */
  readonly retain?: Retain;
  /** Ids at which sampling stops besides the family's own, e.g. those of the model's generation_config.json. */
  readonly stopTokens?: readonly number[];
};

/**
 * The renderer of a model from its tokenizer and chat template.
 * @throws Error when no token ends the template's turns, so that nothing sampled could be told from what follows it.
 */
export async function chatRenderer(options: ChatRendererOptions): Promise<ChatRenderer> {
  const { name, tokenizer, template, retain = 'all' } = options;
  const family = options.family ?? familyOf(tokenizer, template);
  const habits = habitsOf(name, template, tokenizer, family);
  const pieces = piecesOf(tokenizer, family.markers);
  const noTools = await toolsRefusal({ tokenizer, pieces, family }, habits);
  const stopTokens = stopTokensOf(tokenizer, { family, closes: habits.closes, more: options.stopTokens ?? [] });
  const controls = controlPattern(tokenizer.addedTokens, family);
  const renderer: Omit<ChatRenderer, 'fingerprint'> = {
    name,
    tokenizer: tokenizer.name,
    stopTokens,
    noTools,
    vocabulary: {
      size: tokenizer.size,
      idToString: (id) => textOf(tokenizer, Int32Array.of(id)),
      bytesOf: (id) => tokenizer.bytesOf(id),
    },
    tokenize: (text) => tokenizer.encode(text),
    render: async (messages, { tools, addGenerationPrompt }) =>
      tokenizer.encode(template.render({ messages: inForm(messages, habits.form), tools, addGenerationPrompt })),
    extend: (request) => extend({ template, tokenizer, family, habits, pieces, retain }, request),
    lookAlikes: (messages) => messages.reduce((count, { content }) => count + (content.match(controls)?.length ?? 0), 0),
    parse: turnReader({ tokenizer, pieces, family, stops: new Set(stopTokens) }),
  };
  return { ...renderer, fingerprint: () => fingerprintOf(renderer) };
}

function stopTokensOf(
  tokenizer: Tokenizer,
  { family, closes, more }: { readonly family: Family; readonly closes: readonly string[]; readonly more: readonly number[] },
): number[] {
  const texts = [...family.stops, ...closes.filter((text) => !family.closes.includes(text))];
  const tokens = new Map(tokenizer.addedTokens.map(({ content, id }) => [content, id]));
  return [...new Set([...texts.flatMap((text) => tokens.get(text) ?? []), ...more])];
}

/** Tokens that structure a conversation: special ones, the family's markers, and what is written like one. */
function controlPattern(added: readonly AddedToken[], family: Family): RegExp {
  const texts = added
    .filter(
      ({ content, special }) =>
        content.trim() !== '' && (special || family.markers.includes(content) || /^<\/?(?:[|｜]|tool_)/.test(content)),
    )
    .map(({ content }) => escaped(content))
    .sort((one, other) => other.length - one.length);
  return new RegExp(texts.length > 0 ? texts.join('|') : '(?!)', 'g');
}
