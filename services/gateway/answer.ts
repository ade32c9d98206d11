import type { Completion } from './completion.ts';
import type { ChatRenderer, Vocabulary } from './renderer.ts';
import type { ChatRequest } from './wire.ts';

/** What an answer needs besides the call itself. `createdS` is a Unix time in seconds. */
export type AnswerContext = { readonly id: string; readonly createdS: number; readonly modelName: string; readonly renderer: ChatRenderer };

export type Wanted = Pick<ChatRequest, 'logprobs' | 'tokenIds' | 'streamUsage'>;

/** `chat.completion` as JSON, with vLLM's id fields when asked for: exactly the recorded ids, the stop token included. */
export function chatCompletion(completion: Completion, wanted: Wanted, context: AnswerContext): Uint8Array<ArrayBuffer> {
  const { said } = completion;
  const message = {
    role: 'assistant',
    content: said.toolCalls ? said.content || null : said.content,
    ...(said.reasoning === undefined ? {} : { reasoning_content: said.reasoning }),
    ...(said.toolCalls ? { tool_calls: said.toolCalls.map(wireToolCall) } : {}),
  };
  const choice = { index: 0, message, finish_reason: finishReason(completion), ...tokenFields(completion, wanted, context) };
  return withPromptIds({ ...head('chat.completion', context), choices: [choice], usage: usage(completion) }, completion, wanted);
}

/**
 * An answer as JSON, with the prompt's ids at its top, as vLLM gives them. There may be tens of thousands: written and encoded anew, they
 * would cost more than all else.
 */
export function withPromptIds(answer: object, { prompt }: Completion, { tokenIds }: Wanted): Uint8Array<ArrayBuffer> {
  const json = JSON.stringify(answer);
  if (!tokenIds) return Buffer.from(json);
  return Buffer.concat([Buffer.from(`${json.slice(0, -1)},"prompt_token_ids":[`), prompt.json, Buffer.from(']}')]);
}

/** What is told of the sampled tokens in a choice. */
export function tokenFields(completion: Completion, wanted: Wanted, { renderer }: AnswerContext) {
  return {
    logprobs: wanted.logprobs ? wireLogprobs(completion, renderer.vocabulary) : null,
    ...(wanted.tokenIds ? { token_ids: Array.from(completion.sampled) } : {}),
  };
}

/** One entry per sampled id in order. A masked log-probability is null: any number here could be trained on. */
function wireLogprobs({ sampled, logprobs }: Completion, vocabulary: Vocabulary) {
  const content = Array.from(sampled, (id, index) => {
    const bytes = vocabulary.bytesOf(id);
    const logprob = logprobs[index] ?? Number.NaN;
    return { token: utf8.decode(bytes), logprob: Number.isNaN(logprob) ? null : logprob, bytes: [...bytes], top_logprobs: [] };
  });
  return { content };
}

/** Part of a character becomes U+FFFD, a byte order mark stays. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

export function finishReason({ stop, said }: Completion) {
  return said.toolCalls && stop === 'stop' ? 'tool_calls' : stop;
}

export function usage({ prompt, sampled, cachedPromptTokens }: Completion) {
  return {
    prompt_tokens: prompt.length,
    completion_tokens: sampled.length,
    total_tokens: prompt.length + sampled.length,
    prompt_tokens_details: { cached_tokens: cachedPromptTokens },
  };
}

export function wireToolCall({ id, name, arguments: text }: { readonly id: string; readonly name: string; readonly arguments: string }) {
  return { id, type: 'function', function: { name, arguments: text } };
}

export function head(object: string, { id, createdS, modelName }: AnswerContext) {
  return { id, object, created: createdS, model: modelName };
}
