import type { Family } from '../families/family.ts';
import { type Pieces, textOf } from '../families/pieces.ts';
import type { ExtendRequest, Extension } from '../renderer.ts';
import type { ChatTemplate } from '../template/template.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { inForm, tryRender } from './chat-forms.ts';
import { commonStart, type Look, look } from './chat-look.ts';
import { beforeCloseOf, type TemplateHabits } from './chat-probe.ts';
import { chainOf, headOfWindow, SpliceMemo, type View, wholeView, windowView } from './chat-window.ts';

/** What is done where a template would drop earlier reasoning once a user speaks again. */
export type Retain = 'all' | 'tool_cycle' | 'template';

export type SpliceParts = {
  readonly template: ChatTemplate;
  readonly tokenizer: Tokenizer;
  readonly family: Family;
  readonly habits: TemplateHabits;
  readonly pieces: Pieces;
  readonly retain: Retain;
};

type Refusal = Extract<Extension, { refused: string }>;
type Tail = { readonly tail: string; readonly memo: SpliceMemo };

/** Tokens of a prompt's end that are looked at for an open tag. */
const PROMPT_END_TOKENS = 16;

/** The whole conversation is rendered beside the window at these depths and at every doubling after. */
const ALWAYS_WHOLE_UP_TO = 4;

/**
 * What to put behind a produced turn's ids: the template's text after that turn, from the token that closes it. The turn itself is
 * rendered as a word, so nothing that the model said is ever tokenised.
 */
export async function extend(parts: SpliceParts, request: ExtendRequest): Promise<Extension> {
  const { messages, producedIndex } = request;
  const produced = messages[producedIndex];
  if (produced === undefined || producedIndex === messages.length - 1) return { refused: 'nothing follows the assistant message' };
  const kept = againstRetention(parts.retain, request);
  if (kept) return kept;
  const beforeClose = beforeCloseOf(parts.habits, produced);
  if (beforeClose === null) return { refused: 'the template closes no such assistant message with a token' };
  const found = tailOf(parts, request);
  if ('refused' in found) return found;
  const closing = found.tail.slice(beforeClose.length);
  if (!found.tail.startsWith(beforeClose) || !parts.habits.closes.some((text) => closing.startsWith(text)))
    return { refused: 'the template does not close the assistant message where it usually does' };
  const delta = await deltaOf(parts, request, closing);
  if ('refused' in delta) return delta;
  const { memo } = found;
  if (parts.retain !== 'template') return { delta: delta.ids, memo };
  return (await asTheTemplate(parts, request, delta.ids)) ?? { delta: delta.ids, memo };
}

function againstRetention(retain: Retain, { messages, producedIndex }: ExtendRequest): Refusal | null {
  if (retain !== 'tool_cycle' || !messages.some(({ role }, index) => index > producedIndex && role === 'user')) return null;
  const reasoned = messages.some(({ role, reasoning }, index) => index <= producedIndex && role === 'assistant' && reasoning);
  return reasoned ? { refused: 'a user speaks again, and reasoning is kept within a tool cycle only', rewrites: true } : null;
}

async function asTheTemplate({ template, tokenizer, habits }: SpliceParts, request: ExtendRequest, delta: Int32Array) {
  const { messages, tools, prompt, sampled } = request;
  const whole = tryRender(template, { messages: inForm(messages, habits.form), tools, addGenerationPrompt: true });
  const spliced = textOf(tokenizer, Int32Array.of(...prompt, ...sampled, ...delta));
  if ('text' in whole && whole.text.normalize('NFC') === spliced.normalize('NFC')) return null;
  return { refused: 'the template writes the history in another way than it was sampled', rewrites: true } as const;
}

/** From a window where that is enough; from the whole conversation at set depths, for unusual messages, and where the window fails. */
function tailOf(parts: SpliceParts, request: ExtendRequest): Tail | Refusal {
  const earlier = request.memo instanceof SpliceMemo ? request.memo : null;
  const depth = (earlier?.depth ?? 0) + 1;
  const inWindow = earlier?.windowed === false ? null : checked(parts, request, earlier, 'window');
  const part = inWindow !== null && !('refused' in inWindow) ? inWindow : null;
  const next = ({ tail, fixedText }: Look, headText: string, windowed: boolean): Tail => ({
    tail,
    memo: new SpliceMemo({
      depth,
      headMessages: earlier?.headMessages ?? request.producedIndex,
      headText,
      previousIndex: request.producedIndex,
      fixedText,
      earlier,
      windowed,
    }),
  });
  if (part && !isDue(depth) && !isUnusual(request)) return next(part.seen, part.headText, true);
  const whole = checked(parts, request, earlier, 'whole');
  if ('refused' in whole) return whole;
  const agrees = part !== null && part.seen.tail === whole.seen.tail;
  return next(whole.seen, part?.headText ?? '', agrees);
}

function isDue(depth: number): boolean {
  return depth <= ALWAYS_WHOLE_UP_TO || (depth & (depth - 1)) === 0;
}

function isUnusual({ messages, producedIndex }: ExtendRequest): boolean {
  return messages.some(({ role }, index) => index > producedIndex && (role === 'system' || role === 'assistant'));
}

/** Renders a view and makes sure that all that was said in it before still stands there. */
function checked(
  { template, habits }: SpliceParts,
  request: ExtendRequest,
  earlier: SpliceMemo | null,
  which: 'window' | 'whole',
): { readonly seen: Look; readonly headText: string } | Refusal {
  const view = which === 'window' ? windowView(request, earlier) : wholeView(request, earlier);
  const seen = look(template, view, habits.form);
  if ('refused' in seen) return seen;
  const headText = which === 'window' && earlier ? earlier.headText : headTextOf(template, habits, view, { request, earlier, which });
  const expected = which === 'window' ? (earlier ? [earlier] : []) : chainOf(earlier);
  if (!seen.lead.startsWith(headText)) return rewritten(headText, seen.lead);
  for (const [index, { fixedText }] of expected.entries()) {
    const now = seen.between[index] ?? '';
    if (!now.startsWith(fixedText)) return rewritten(fixedText, now);
  }
  return { seen, headText };
}

/** What the head looked like when the first turn was sampled after it. A template that refuses the head alone has none to keep. */
function headTextOf(
  template: ChatTemplate,
  { form }: TemplateHabits,
  { tools }: View,
  { request, earlier, which }: { request: ExtendRequest; earlier: SpliceMemo | null; which: 'window' | 'whole' },
): string {
  const { messages } = request;
  const headMessages = earlier?.headMessages ?? request.producedIndex;
  const head = which === 'window' ? headOfWindow(messages, headMessages) : messages.slice(0, headMessages);
  const [open, closed] = [true, false].map((addGenerationPrompt) =>
    tryRender(template, { messages: inForm(head, form), tools, addGenerationPrompt }),
  );
  return open && closed && 'text' in open && 'text' in closed ? commonStart(open.text, closed.text) : '';
}

function rewritten(before: string, now: string): Refusal {
  const at = commonStart(before, now).length;
  const shown = (text: string) => JSON.stringify(text.slice(at, at + 40));
  return { refused: `the template writes earlier text anew: ${shown(before)} became ${shown(now)}`, rewrites: true };
}

async function deltaOf(
  { tokenizer, habits, family, pieces }: SpliceParts,
  request: ExtendRequest,
  closing: string,
): Promise<{ readonly ids: Int32Array } | Refusal> {
  const ids = await tokenizer.encode(closing);
  const [close] = ids;
  if (close === undefined || !habits.closes.some((text) => tokenizer.tokenId(text) === close))
    return { refused: 'the close of the assistant message is not one token' };
  if (request.closed) {
    if (family.endsWithNextHeader && request.sampled.at(-1) !== close)
      return { refused: 'the turn ended with the header of another role than the one that follows' };
    return { ids: ids.subarray(1) };
  }
  if (family.reasoning === null || !endsInReasoning(tokenizer, pieces, family.reasoning, request)) return { ids };
  const glue = await tokenizer.encode(family.reasoning.glue);
  return { ids: Int32Array.of(...glue, ...ids) };
}

/** By markers of the turn; without any, by the prompt's end. */
function endsInReasoning(
  tokenizer: Tokenizer,
  pieces: Pieces,
  { open, close }: { readonly open: string; readonly close: string },
  { prompt, sampled }: Pick<ExtendRequest, 'prompt' | 'sampled'>,
): boolean {
  const last = pieces.of(sampled).findLast(({ text, marker }) => marker && (text === open || text === close));
  return last ? last.text === open : opensReasoning(tokenizer, prompt, open);
}

/** The prompt ends in the tag that opens reasoning, as generation prompts of reasoning models may. */
export function opensReasoning(tokenizer: Tokenizer, prompt: Int32Array, open: string): boolean {
  return textOf(tokenizer, prompt.subarray(-PROMPT_END_TOKENS)).trimEnd().endsWith(open);
}
