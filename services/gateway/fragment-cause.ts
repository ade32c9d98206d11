import { keptOf } from './canonical.ts';
import { follow, type Known, type MessageNode, type Turn } from './message-tree.ts';
import type { ChatMessage } from './renderer.ts';

/**
 * Why a call's prompt does not simply continue an earlier call.
 * - `first`: nothing was sampled before.
 * - `retry`: the same messages were sampled before.
 * - `branch`: another call already continued the same turn, with other messages.
 * - `edited_history`: messages that were sampled after were changed, left out or put in.
 * - `compaction`: the same, and the conversation has become shorter.
 * - `no_match`: a conversation of its own (a sub-agent, a title, a summary).
 * - `tools_changed`: the tools, and with them the start of the prompt, are others.
 * - `template_rewrites`: a turn matched, but the template writes earlier text anew, or drops reasoning that is not to be kept.
 * - `template_refuses`: a turn matched, but the template cannot be extended there.
 */
export type FragmentCause =
  | 'first'
  | 'retry'
  | 'branch'
  | 'edited_history'
  | 'compaction'
  | 'no_match'
  | 'tools_changed'
  | 'template_rewrites'
  | 'template_refuses';

type Trial = { readonly otherRoots: readonly MessageNode[]; readonly turns: readonly Turn[] };

/** The cause of a call that does not continue an earlier one, from how much of its conversation is known. */
export function openingCause(messages: readonly ChatMessage[], { node, depth, last }: Known, { otherRoots, turns }: Trial): FragmentCause {
  const foreign = messages.slice(depth).filter(({ role }) => role === 'assistant');
  const asked = node.longest - 1; // without the turn that was the answer
  const became = messages.length < asked ? 'compaction' : 'edited_history';
  if (last) return foreign.length > 0 ? became : 'branch';
  if (otherRoots.some((root) => follow(root, messages).last !== null)) return 'tools_changed';
  const sharesHead = messages.slice(0, depth).some(({ role }) => role !== 'system');
  const holdsOurs = foreign.some((message) => turns.some(({ said }) => keptOf(said, message) > 0));
  return (sharesHead && node.longest > 0) || holdsOurs ? became : 'no_match';
}
