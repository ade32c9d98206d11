import type { Family } from '../families/family.ts';
import type { ChatMessage, ToolCall, ToolDefinition } from '../renderer.ts';
import type { ChatTemplate } from '../template/template.ts';
import type { AddedToken, Tokenizer } from '../tokenizer/tokenizer.ts';
import { anchored, CALL_FORMS, type CallForm, inForm, STAND_IN, tryRender } from './chat-forms.ts';

/** What a template does, found out once by rendering small conversations. */
export type TemplateHabits = {
  readonly form: CallForm;
  /** What stands between the end of a turn's own text and the token that closes it; null where no token closes it. */
  readonly beforeClose: { readonly text: string | null; readonly oneCall: string | null; readonly calls: string | null };
  /** Tokens that close a turn in a rendered history. */
  readonly closes: readonly string[];
  /** Why turns with calls cannot be rendered; null when they can. */
  readonly callsRefused: string | null;
  /** Turns with one and with several calls as the template writes them, up to their close; for reading them back. */
  readonly writtenCalls: readonly WrittenCalls[];
};

/** `prompt` is what stands before the turn, `calls` what was to be written. */
export type WrittenCalls = { readonly prompt: string; readonly turn: string; readonly close: string; readonly calls: readonly ToolCall[] };

const WORD = 'anchor0q7w3k9z';
const SAID = 'said0m4x8';
const ASK: ChatMessage = { role: 'user', content: 'asked5h2' };
const RESULT: ChatMessage = { role: 'tool', content: 'result8j1' };

/** What stands before the close of such a turn; some templates print the id of its last call there. Null where no token closes it. */
export function beforeCloseOf({ beforeClose }: TemplateHabits, family: Family, { toolCalls }: ChatMessage): string | null {
  const last = toolCalls?.at(-1);
  if (toolCalls === undefined || last === undefined) return beforeClose.text;
  const text = toolCalls.length === 1 ? beforeClose.oneCall : beforeClose.calls;
  return text?.replaceAll(callNamed(family, toolCalls.length === 1 ? 0 : 1).id, () => last.id) ?? null;
}

/**
 * @throws Error when no token of the tokenizer ends the template's turns, or when that token swallows white space: then sampled ids
 * cannot be told from what follows them.
 */
export function habitsOf(name: string, template: ChatTemplate, tokenizer: Tokenizer, family: Family): TemplateHabits {
  const spoken = [ASK, anchored({ role: 'assistant', content: '' }, WORD), ASK];
  // Some templates are for conversations with tools only.
  const tools = [[], [STAND_IN]].find((some) => 'text' in tryRender(template, input(spoken, CALL_FORMS[0], some))) ?? [];
  const probe = new Probe(template, tools);
  const known = tokenizer.addedTokens.filter(({ content }) => [...family.stops, ...family.closes].includes(content));
  const text = probe.tail(spoken, CALL_FORMS[0]);
  const close =
    text.tail === null ? undefined : (firstOf(text.tail, known) ?? firstOf(text.tail, tokenizer.addedTokens.filter(isControl), 0));
  if (text.tail === null || close === undefined)
    throw new Error(
      `the chat template of ${name} cannot be used: ${text.refused ?? `no token of ${tokenizer.name} ends an assistant's turn`}. ` +
        'Check that the template belongs to this tokenizer.',
    );
  if (close.token.rstrip || close.token.lstrip)
    throw new Error(
      `the chat template of ${name} cannot be used: ${close.token.content}, which ends its turns, swallows white space around it ` +
        `(lstrip or rstrip in the tokenizer's file), so that ids cannot be appended to it exactly.`,
    );
  const closing = known.some(({ content }) => content === close.token.content) ? known : [...known, close.token];
  const [first, second] = [callNamed(family, 0), callNamed(family, 1)];
  const { form, refused } = probe.callForm(first);
  const one = probe.turn([first], form, closing);
  const several = probe.turn([first, second], form, closing);
  return {
    form,
    closes: closing.map(({ content }) => content),
    callsRefused: refused,
    beforeClose: { text: text.tail.slice(0, close.at), oneCall: one?.beforeClose ?? null, calls: several?.beforeClose ?? null },
    writtenCalls: [one, several].flatMap((turn) => turn?.written ?? []),
  };
}

/** Renders small conversations with one template. */
class Probe {
  readonly #template: ChatTemplate;
  readonly #tools: readonly ToolDefinition[];

  constructor(template: ChatTemplate, tools: readonly ToolDefinition[]) {
    this.#template = template;
    this.#tools = tools;
  }

  render(messages: readonly ChatMessage[], form: CallForm) {
    return tryRender(this.#template, input(messages, form, this.#tools));
  }

  /** The text after the word, if the template shows it once. */
  tail(messages: readonly ChatMessage[], form: CallForm): { readonly tail: string | null; readonly refused: string | null } {
    const rendered = this.render(messages, form);
    if ('refused' in rendered) return { tail: null, refused: rendered.refused };
    const [, after, ...more] = rendered.text.split(WORD);
    return { tail: more.length === 0 && after !== undefined ? after : null, refused: null };
  }

  /** The first form that shows the call, and if there is one the text beside it too. */
  callForm(call: ToolCall): { readonly form: CallForm; readonly refused: string | null } {
    const message = withCalls([call]);
    let shown: CallForm | null = null;
    let refused: string | null = null;
    for (const form of CALL_FORMS) {
      const text = this.render([ASK, { ...message, content: SAID }, resultOf(call)], form);
      if ('refused' in text) refused ??= text.refused;
      else if (once(text.text, WORD)) {
        shown ??= form;
        if (once(text.text, SAID)) return { form: this.#withReasoning(call, form), refused: null };
      }
    }
    if (shown) return { form: this.#withReasoning(call, shown), refused: null };
    return { form: CALL_FORMS[0], refused: refused ?? 'the template does not show tool calls' };
  }

  /** A turn with these calls, if a token closes it before their results. */
  turn(calls: readonly ToolCall[], form: CallForm, closing: readonly AddedToken[]) {
    const message = withCalls(calls);
    const prompt = this.render([ASK], form);
    const whole = this.render([ASK, message, ...calls.map(resultOf)], form);
    const { tail } = this.tail([ASK, message, ...calls.map(resultOf)], form);
    const close = tail === null ? undefined : firstOf(tail, closing);
    if (tail === null || close === undefined || 'refused' in whole || 'refused' in prompt) return null;
    const start = whole.text.startsWith(prompt.text) ? prompt.text.length : null;
    const end = whole.text.length - tail.length + close.at;
    const written: WrittenCalls[] =
      start === null
        ? []
        : [{ prompt: prompt.text, turn: whole.text.slice(start, end), close: close.token.content, calls: message.toolCalls ?? [] }];
    return { beforeClose: tail.slice(0, close.at), written };
  }

  #withReasoning(call: ToolCall, form: CallForm): CallForm {
    const message = { ...withCalls([call]), content: SAID, reasoning: 'thought' };
    return 'refused' in this.render([ASK, message, resultOf(call)], form) ? { ...form, mergesReasoning: true } : form;
  }
}

function callNamed({ callIds }: Family, index: number): ToolCall {
  return { id: callIds === 'sampled' ? `functions.run:${index}` : `call0000${index}`, name: 'run', arguments: '{"a": "b"}' };
}

function resultOf({ id }: ToolCall): ChatMessage {
  return { ...RESULT, toolCallId: id };
}

function withCalls(toolCalls: readonly ToolCall[]): ChatMessage {
  return anchored({ role: 'assistant', content: '', toolCalls }, WORD);
}

function input(messages: readonly ChatMessage[], form: CallForm, tools: readonly ToolDefinition[]) {
  return { messages: inForm(messages, form), tools, addGenerationPrompt: true };
}

/** The first of these tokens in the text, as long as it stands before what the next message says; not behind more text than `within`. */
function firstOf(
  text: string,
  tokens: readonly AddedToken[],
  within = Number.POSITIVE_INFINITY,
): { readonly token: AddedToken; readonly at: number } | undefined {
  const ends = [ASK, RESULT].map(({ content }) => text.indexOf(content)).filter((at) => at >= 0);
  const end = Math.min(text.length, ...ends);
  return tokens
    .map((token) => ({ token, at: text.indexOf(token.content) }))
    .filter(({ at }) => at >= 0 && at < end && text.slice(0, at).trim().length <= within)
    .sort((a, b) => a.at - b.at || b.token.content.length - a.token.content.length)[0];
}

/** White space and markup are tokens of their own in some vocabularies; they end nothing, nor do the tags of reasoning. */
function isControl({ content, special }: AddedToken): boolean {
  return special && content.trim() !== '' && !/think/.test(content);
}

function once(text: string, word: string): boolean {
  return text.split(word).length === 2;
}
