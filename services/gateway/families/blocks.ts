import type { CallParser, CallText, Piece } from './family.ts';
import { raw } from './pieces.ts';
import type { ToolShapes } from './tool-shapes.ts';

/**
 * Calls that stand in blocks between an opening and a closing marker. The last block of a turn may lack its closing one, if what is
 * in it can be read. One block that cannot be read makes all of the turn unreadable: half of what a model wanted is not executed.
 */
export function blockCalls(
  open: string,
  close: string,
  read: (block: readonly Piece[], tools: ToolShapes) => readonly CallText[] | null,
): CallParser {
  return (pieces, tools) => {
    const { texts, blocks, stray } = split(pieces, open, close);
    if (stray) return null;
    const calls: CallText[] = [];
    for (const block of blocks) {
      const found = read(block, tools);
      if (found === null || found.length === 0) return null;
      calls.push(...found);
    }
    return { content: calls.length === 0 ? raw(pieces) : outsideText(texts), calls };
  };
}

/** What was said around calls, one line after the other. */
export function outsideText(texts: readonly string[]): string {
  return texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n');
}

function split(pieces: readonly Piece[], open: string, close: string) {
  const texts: string[] = [];
  const blocks: Piece[][] = [];
  let block: Piece[] | null = null;
  let stray = false;
  for (const piece of pieces) {
    const { text, marker } = piece;
    if (marker && text === open) {
      stray ||= block !== null;
      block = [];
      blocks.push(block);
    } else if (marker && text === close) {
      stray ||= block === null;
      block = null;
    } else if (block) block.push(piece);
    else texts.push(text);
  }
  return { texts, blocks, stray };
}
