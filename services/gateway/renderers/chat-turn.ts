import { createHash } from 'node:crypto';
import { toolsKey } from '../canonical.ts';
import type { CallText, Family } from '../families/family.ts';
import { opensReasoning, type Pieces, textOf } from '../families/pieces.ts';
import { toolShapes } from '../families/tool-shapes.ts';
import type { ChatRenderer, ParseContext, ParsedTurn, ToolCall } from '../renderer.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';

export type TurnReaderParts = {
  readonly tokenizer: Tokenizer;
  readonly pieces: Pieces;
  readonly family: Family;
  /** Ids that end a turn. */
  readonly stops: ReadonlySet<number>;
};

/** Ids of a prompt's end that go into the ids of tool calls. */
const CALL_ID_TOKENS = 64;

/** Reads sampled ids as a family's turns are written: reasoning, text and calls. */
export function turnReader({ tokenizer, pieces, family, stops }: TurnReaderParts): ChatRenderer['parse'] {
  const shapesOf = lastShapes();
  return (sampled, context) => {
    const last = sampled.at(-1);
    const closed = last !== undefined && stops.has(last);
    const { content, reasoning, calls } = family.read({
      pieces: pieces.of(closed ? sampled.subarray(0, -1) : sampled),
      closedBy: closed ? textOf(tokenizer, Int32Array.of(last)) : null,
      reasoningOpen: family.reasoning !== null && opensReasoning(tokenizer, context.prompt, family.reasoning.open),
      tools: shapesOf(context.tools),
    });
    return said(content, reasoning, calls === null ? null : withIds(calls, family, sampled, context));
  };
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
