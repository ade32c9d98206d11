import { type AnswerContext, finishReason, head, tokenFields, usage, type Wanted, wireToolCall, withPromptIds } from './answer.ts';
import type { Completion } from './completion.ts';

/**
 * An answer as server-sent events: role; reasoning, text and each tool call in a delta of its own; finish reason; usage if asked; `[DONE]`.
 * The answer is whole by then, so no delta ends within a character. Ids stand where vLLM has them: the prompt's in the first chunk, the
 * sampled ones, with their log-probabilities, in the first delta of the answer.
 */
export function* completionEvents(completion: Completion, wanted: Wanted, context: AnswerContext): Generator<Uint8Array> {
  const chunk = (choice: object) => ({
    ...head('chat.completion.chunk', context),
    choices: [{ index: 0, finish_reason: null, ...choice }],
  });
  yield data(withPromptIds(chunk({ delta: { role: 'assistant', content: '' } }), completion, wanted));
  for (const [index, delta] of deltas(completion).entries())
    yield event(chunk({ delta, ...(index === 0 ? tokenFields(completion, wanted, context) : {}) }));
  yield event(chunk({ delta: {}, finish_reason: finishReason(completion) }));
  if (wanted.streamUsage) yield event({ ...head('chat.completion.chunk', context), choices: [], usage: usage(completion) });
  yield data(Buffer.from('[DONE]'));
}

/** At least one, though it may be an empty text. */
function deltas({ said: { content, reasoning, toolCalls = [] } }: Completion): object[] {
  const parts = [
    ...(reasoning === undefined ? [] : [{ reasoning_content: reasoning }]),
    ...(content === '' ? [] : [{ content }]),
    ...toolCalls.map((call, index) => ({ tool_calls: [{ index, ...wireToolCall(call) }] })),
  ];
  return parts.length > 0 ? parts : [{ content }];
}

export function event(object: object): Uint8Array {
  return data(Buffer.from(JSON.stringify(object)));
}

function data(text: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from('data: '), text, Buffer.from('\n\n')]);
}
