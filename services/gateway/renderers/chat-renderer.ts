import { createHash } from 'node:crypto';
import { toolsKey } from '../canonical.ts';
import type { CallText, Family } from '../families/family.ts';
import { familyOf } from '../families/family-of.ts';
import { escaped, opensReasoning, piecesOf, textOf } from '../families/pieces.ts';
import { toolShapes } from '../families/tool-shapes.ts';
import type { ChatRenderer, ParseContext, ParsedTurn, ToolCall } from '../renderer.ts';
import type { ChatTemplate } from '../template/template.ts';
import type { AddedToken, Tokenizer } from '../tokenizer/tokenizer.ts';
import { inForm } from './chat-forms.ts';
import { habitsOf } from './chat-probe.ts';
import { toolsRefusal } from './chat-read-back.ts';
import { extend, type Retain } from './chat-splice.ts';
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

/** Ids of a prompt's end that go into the ids of tool calls. */
const CALL_ID_TOKENS = 64;

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
  const stops = new Set(stopTokens);
  const controls = controlPattern(tokenizer.addedTokens, family);
  const shapesOf = lastShapes();
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
    parse(sampled, context) {
      const last = sampled.at(-1);
      const closed = last !== undefined && stops.has(last);
      const { content, reasoning, calls } = family.read({
        pieces: pieces.of(closed ? sampled.subarray(0, -1) : sampled),
        closedBy: closed ? textOf(tokenizer, Int32Array.of(last)) : null,
        reasoningOpen: family.reasoning !== null && opensReasoning(tokenizer, context.prompt, family.reasoning.open),
        tools: shapesOf(context.tools),
      });
      return said(content, reasoning, calls === null ? null : withIds(calls, family, sampled, context));
    },
  };
  return { ...renderer, fingerprint: () => fingerprintOf(renderer) };
}

function said(content: string, reasoning: string, toolCalls: ParsedTurn['toolCalls'] | null): ParsedTurn {
  return {
    content,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls?.length ? { toolCalls } : {}),
    ...(toolCalls === null ? { callsUnreadable: true } : {}),
  };
}

/** A function of what was sampled and after what, so that an attempt that replays a trial names its calls the same. */
function withIds(
  calls: readonly CallText[],
  { callIds }: Family,
  sampled: Int32Array,
  { prompt, callIndex }: ParseContext,
): readonly ToolCall[] {
  if (calls.length === 0) return [];
  const seed = createHash('sha256')
    .update(`${prompt.length}|${callIndex ?? ''}|${prompt.subarray(-CALL_ID_TOKENS).join()}|${sampled.join()}`)
    .digest('hex');
  return calls.map(({ name, arguments: json, id }, index) => {
    const digest = createHash('sha256').update(`${seed}|${index}`).digest('hex');
    const own = callIds === 'nine' ? digest.slice(0, 9) : `call_${digest.slice(0, 24)}`;
    return { id: id !== undefined && callIds !== 'own' ? id : own, name, arguments: json };
  });
}

/** Reads tools again only when they differ from those of the call before. */
function lastShapes(): typeof toolShapes {
  let last: { readonly key: string; readonly shapes: ReturnType<typeof toolShapes> } | null = null;
  return (tools) => {
    const key = toolsKey(tools);
    if (last?.key !== key) last = { key, shapes: toolShapes(tools) };
    return last.shapes;
  };
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
