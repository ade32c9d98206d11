import type { Family } from '../families/family.ts';
import { opensReasoning, type Pieces } from '../families/pieces.ts';
import type { ParameterTypes } from '../families/tool-shapes.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { TemplateHabits, WrittenCalls } from './chat-probe.ts';

/** A tool with one parameter of type string, as the calls that templates were made to write have it. */
const TOOLS = new Map([['run', new Map<string, ParameterTypes>([['a', new Set(['string'])]])]]);

/**
 * Why requests with tools are refused; null when they are not. A family is only taken for a template whose own way of writing a call
 * it can read: calls that no agent gets to see would look like a model that talks instead of acting.
 */
export async function toolsRefusal(
  { tokenizer, pieces, family }: { readonly tokenizer: Tokenizer; readonly pieces: Pieces; readonly family: Family },
  { callsRefused, writtenCalls }: TemplateHabits,
): Promise<string | null> {
  if (family.noTools !== null) return family.noTools;
  if (callsRefused !== null) return callsRefused;
  for (const written of writtenCalls)
    if (!(await readsBack(tokenizer, pieces, family, written)))
      return `its template writes tool calls in another form than the family "${family.name}", which it looks like`;
  return null;
}

async function readsBack(tokenizer: Tokenizer, pieces: Pieces, family: Family, { prompt, turn, close, calls }: WrittenCalls) {
  const open = family.reasoning?.open;
  const read = family.read({
    pieces: pieces.of(await tokenizer.encode(turn)),
    closedBy: close,
    reasoningOpen: open !== undefined && opensReasoning(tokenizer, await tokenizer.encode(prompt), open),
    tools: TOOLS,
  }).calls;
  return (
    read?.length === calls.length &&
    calls.every(({ name, arguments: json }, index) => {
      const call = read[index];
      return call?.name === name && (index < calls.length - 1 || same(call.arguments, json));
    })
  );
}

function same(one: string, other: string): boolean {
  return JSON.stringify(JSON.parse(one)) === JSON.stringify(JSON.parse(other));
}
