import type { Family } from '../families/family.ts';
import type { ChatMessage, ToolCall } from '../renderer.ts';
import type { ChatTemplate } from '../template/template.ts';
import type { AddedToken, Tokenizer } from '../tokenizer/tokenizer.ts';
import { anchored, CALL_FORMS, type CallForm, inForm, tryRender } from './chat-forms.ts';

/** Kinds of turns that templates may end differently. */
type TurnKind = 'text' | 'one_call' | 'calls';

/** What a template does, found out once by rendering small conversations. */
export type TemplateHabits = {
  readonly form: CallForm;
  /** What stands between the end of a turn's own text and the token that closes it; null where no token closes it. */
  readonly beforeClose: Readonly<Record<TurnKind, string | null>>;
  /** Tokens that close a turn in a rendered history. */
  readonly closes: readonly string[];
  /** Why turns with calls cannot be rendered; null when they can. */
  readonly callsRefused: string | null;
};

const WORD = 'anchor0q7w3k9z';
const SAID = 'said0m4x8';
const ASK: ChatMessage = { role: 'user', content: 'ask' };
const CALL: ToolCall = { id: 'call00001', name: 'run', arguments: '{"a": "b"}' };
const RESULT: ChatMessage = { role: 'tool', content: 'result', toolCallId: CALL.id };
const CALL_2: ToolCall = { ...CALL, id: 'call00002' };
const RESULT_2: ChatMessage = { ...RESULT, toolCallId: CALL_2.id };

/** What stands before the close of such a turn; some templates print the id of its last call there. Null where no token closes it. */
export function beforeCloseOf({ beforeClose }: TemplateHabits, { toolCalls }: ChatMessage): string | null {
  const last = toolCalls?.at(-1);
  if (toolCalls === undefined || last === undefined) return beforeClose.text;
  return toolCalls.length === 1
    ? (beforeClose.one_call?.replaceAll(CALL.id, () => last.id) ?? null)
    : (beforeClose.calls?.replaceAll(CALL_2.id, () => last.id) ?? null);
}

/**
 * @throws Error when no token of the tokenizer ends the template's turns, or when that token swallows white space: then sampled ids
 * cannot be told from what follows them.
 */
export function habitsOf(name: string, template: ChatTemplate, tokenizer: Tokenizer, family: Family): TemplateHabits {
  const known = tokenizer.addedTokens.filter(({ content }) => [...family.stops, ...family.closes].includes(content));
  const text = tail(template, [ASK, anchored({ role: 'assistant', content: '' }, WORD), ASK], CALL_FORMS[0] as CallForm);
  const close = text.tail === null ? undefined : (firstOf(text.tail, known) ?? firstOf(text.tail, tokenizer.addedTokens.filter(isControl)));
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
  const { form, refused } = callForm(template);
  return {
    form,
    closes: closing.map(({ content }) => content),
    callsRefused: refused,
    beforeClose: {
      text: text.tail.slice(0, close.at),
      one_call: beforeClose(tail(template, [ASK, withCalls(CALL), RESULT], form).tail, closing),
      calls: beforeClose(tail(template, [ASK, withCalls(CALL, CALL_2), RESULT, RESULT_2], form).tail, closing),
    },
  };
}

/** The first form that shows the call, and if there is one the text beside it too. */
function callForm(template: ChatTemplate): { form: CallForm; refused: string | null } {
  const call = withCalls(CALL);
  let shown: CallForm | null = null;
  let refused: string | null = null;
  for (const form of CALL_FORMS) {
    const text = tryRender(template, input([ASK, { ...call, content: SAID }, RESULT], form));
    if ('refused' in text) refused ??= text.refused;
    else if (once(text.text, WORD)) {
      shown ??= form;
      if (once(text.text, SAID)) return { form: withReasoning(template, form), refused: null };
    }
  }
  if (shown) return { form: withReasoning(template, shown), refused: null };
  return { form: CALL_FORMS[0] as CallForm, refused: refused ?? 'the template does not show tool calls' };
}

function withReasoning(template: ChatTemplate, form: CallForm): CallForm {
  const message = { ...withCalls(CALL), content: SAID, reasoning: 'thought' };
  return 'refused' in tryRender(template, input([ASK, message, RESULT], form)) ? { ...form, mergesReasoning: true } : form;
}

function withCalls(...toolCalls: ToolCall[]): ChatMessage {
  return anchored({ role: 'assistant', content: '', toolCalls }, WORD);
}

function input(messages: readonly ChatMessage[], form: CallForm) {
  return { messages: inForm(messages, form), tools: [], addGenerationPrompt: true };
}

function tail(template: ChatTemplate, messages: readonly ChatMessage[], form: CallForm) {
  const rendered = tryRender(template, input(messages, form));
  if ('refused' in rendered) return { tail: null, refused: rendered.refused };
  const [, after, ...more] = rendered.text.split(WORD);
  return { tail: more.length === 0 && after !== undefined ? after : null, refused: null };
}

function beforeClose(text: string | null, closing: readonly AddedToken[]): string | null {
  const close = text === null ? undefined : firstOf(text, closing);
  return text === null || close === undefined ? null : text.slice(0, close.at);
}

function firstOf(text: string, tokens: readonly AddedToken[]): { readonly token: AddedToken; readonly at: number } | undefined {
  return tokens
    .map((token) => ({ token, at: text.indexOf(token.content) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at || b.token.content.length - a.token.content.length)[0];
}

/** White space and markup are tokens of their own in some vocabularies; they end nothing. */
function isControl({ content, special }: AddedToken): boolean {
  return special && content.trim() !== '';
}

function once(text: string, word: string): boolean {
  return text.split(word).length === 2;
}
