import type { ChatTemplate } from '../template/template.ts';
import { anchored, CALL_FORMS, type CallForm, inForm, tryRender } from './chat-forms.ts';
import type { View } from './chat-window.ts';

/** A rendered view, cut at the words in its produced turns. */
export type Look = {
  /** Text before the first produced turn's word. */
  readonly lead: string;
  /** Text between two produced turns' words. */
  readonly between: readonly string[];
  /** Text after the word of the turn that is extended, generation prompt included. */
  readonly tail: string;
  /** The part of `tail` that stands before the generation prompt: a later render must write it again. */
  readonly fixedText: string;
};

type Sight = Look | { readonly refused: string };

/** Words are the same for the same view, so that a prompt depends on nothing but its conversation. */
const SALTS = [1, 2, 3];

/**
 * Renders a view twice: with and without generation prompt, and with another word in the turn that is extended. What follows that turn
 * must be the same both times, or it depends on what the assistant said and cannot be put behind the sampled ids.
 */
export function look(template: ChatTemplate, view: View, habit: CallForm): Sight {
  const hasCalls = view.messages.some(({ toolCalls }) => toolCalls?.length);
  const forms = hasCalls ? [habit, ...CALL_FORMS.filter((form) => form !== habit)] : [habit];
  let first: { refused: string } | null = null;
  for (const form of forms) {
    const sight = lookInForm(template, view, form);
    if (!('refused' in sight)) return sight;
    first ??= sight;
  }
  return first ?? { refused: 'nothing was rendered' };
}

/** The text that two texts begin with. */
export function commonStart(one: string, other: string): string {
  if (one.startsWith(other)) return other;
  let length = 0;
  while (length < one.length && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return one.slice(0, length);
}

function lookInForm(template: ChatTemplate, view: View, form: CallForm): Sight {
  let refused = '';
  for (const salt of SALTS) {
    const wordsOf = (name: string) => [...view.earlier.map((_, index) => word(`e${index}`, salt)), word(name, salt)];
    const shown = (name: string, addGenerationPrompt: boolean) => cut(template, view, form, { words: wordsOf(name), addGenerationPrompt });
    const open = shown('p', true);
    if ('refused' in open) return open;
    const closed = shown('q', false);
    if ('refused' in closed) return closed;
    if ('unclear' in open || 'unclear' in closed) {
      refused = 'unclear' in open ? open.unclear : 'unclear' in closed ? closed.unclear : '';
      continue;
    }
    const fixedText = commonStart(open.tail, closed.tail);
    if (fixedText !== closed.tail && !sameTail(shown('q', true), open.tail))
      return { refused: 'what follows an assistant message depends on what it says' };
    return { ...open, fixedText };
  }
  return { refused };
}

type Cut = Omit<Look, 'fixedText'> | { readonly refused: string } | { readonly unclear: string };

function sameTail(cut: Cut, tail: string): boolean {
  return 'tail' in cut && cut.tail === tail;
}

function cut(
  template: ChatTemplate,
  { messages, earlier, produced, tools }: View,
  form: CallForm,
  { words, addGenerationPrompt }: { readonly words: readonly string[]; readonly addGenerationPrompt: boolean },
): Cut {
  const places = [...earlier, produced];
  const shown = [...messages];
  for (const [index, place] of places.entries()) {
    const message = messages[place];
    if (message) shown[place] = anchored(message, words[index] ?? '');
  }
  const rendered = tryRender(template, { messages: inForm(shown, form), tools, addGenerationPrompt });
  if ('refused' in rendered) return { refused: `the template refuses: ${rendered.refused}` };
  const parts: string[] = [];
  let from = 0;
  for (const one of words) {
    const at = rendered.text.indexOf(one, from);
    if (at === -1 || rendered.text.indexOf(one) !== at || rendered.text.indexOf(one, at + 1) !== -1)
      return { unclear: 'the template does not show each assistant message once and in order' };
    parts.push(rendered.text.slice(from, at));
    from = at + one.length;
  }
  const [lead = '', ...between] = parts;
  return { lead, between, tail: rendered.text.slice(from) };
}

/** Letters and digits only, so that no template or escape changes it; none is the beginning of another. */
function word(name: string, salt: number): string {
  return `anchor${salt}q7w3k9${name}z`;
}
