import type { Completion } from './completion.ts';
import type { ChatRenderer } from './renderer.ts';
import type { ChatRequest } from './wire.ts';

/** What an answer needs besides the call itself. `createdS` is a Unix time in seconds. */
export type AnswerContext = { readonly id: string; readonly createdS: number; readonly modelName: string; readonly renderer: ChatRenderer };

type Wanted = Pick<ChatRequest, 'logprobs' | 'tokenIds' | 'streamUsage'>;

/** `chat.completion` with vLLM's id fields when asked for: exactly the recorded ids, the stop token included. */
export function chatCompletion(completion: Completion, wanted: Wanted, context: AnswerContext) {
  const { said, prompt, sampled } = completion;
  const message = {
    role: 'assistant',
    content: said.toolCalls ? said.content || null : said.content,
    ...(said.reasoning === undefined ? {} : { reasoning_content: said.reasoning }),
    ...(said.toolCalls ? { tool_calls: said.toolCalls.map(wireToolCall) } : {}),
  };
  return {
    ...head('chat.completion', context),
    choices: [
      {
        index: 0,
        message,
        finish_reason: finishReason(completion),
        logprobs: wanted.logprobs ? wireLogprobs(completion, context.renderer) : null,
        ...(wanted.tokenIds ? { token_ids: Array.from(sampled) } : {}),
      },
    ],
    usage: usage(completion),
    ...(wanted.tokenIds ? { prompt_token_ids: Array.from(prompt) } : {}),
  };
}

/** The same answer as server-sent events: role, the whole message in one delta, finish reason, usage if asked, `[DONE]`. */
export function* completionEvents(completion: Completion, wanted: Wanted, context: AnswerContext): Generator<string> {
  const { said, prompt, sampled } = completion;
  const chunk = (choice: object, extra: object = {}) =>
    event({ ...head('chat.completion.chunk', context), choices: [{ index: 0, finish_reason: null, ...choice }], ...extra });
  yield chunk({ delta: { role: 'assistant', content: '' } }, wanted.tokenIds ? { prompt_token_ids: Array.from(prompt) } : {});
  const delta = {
    ...(said.reasoning === undefined ? {} : { reasoning_content: said.reasoning }),
    content: said.content,
    ...(said.toolCalls ? { tool_calls: said.toolCalls.map((call, index) => ({ index, ...wireToolCall(call) })) } : {}),
  };
  yield chunk({
    delta,
    logprobs: wanted.logprobs ? wireLogprobs(completion, context.renderer) : null,
    ...(wanted.tokenIds ? { token_ids: Array.from(sampled) } : {}),
  });
  yield chunk({ delta: {}, finish_reason: finishReason(completion) });
  if (wanted.streamUsage) yield event({ ...head('chat.completion.chunk', context), choices: [], usage: usage(completion) });
  yield 'data: [DONE]\n\n';
}

export function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** One entry per sampled id in order. A masked log-probability is null: any number here could be trained on. */
function wireLogprobs({ sampled, logprobs }: Completion, { vocabulary }: ChatRenderer) {
  const content = Array.from(sampled, (id, index) => {
    const token = vocabulary.idToString(id);
    const logprob = logprobs[index] ?? Number.NaN;
    return { token, logprob: Number.isNaN(logprob) ? null : logprob, bytes: [...Buffer.from(token)], top_logprobs: [] };
  });
  return { content };
}

function finishReason({ stop, said }: Completion) {
  return said.toolCalls && stop === 'stop' ? 'tool_calls' : stop;
}

function usage({ prompt, sampled, cachedPromptTokens }: Completion) {
  return {
    prompt_tokens: prompt.length,
    completion_tokens: sampled.length,
    total_tokens: prompt.length + sampled.length,
    prompt_tokens_details: { cached_tokens: cachedPromptTokens },
  };
}

function wireToolCall({ id, name, arguments: text }: { readonly id: string; readonly name: string; readonly arguments: string }) {
  return { id, type: 'function', function: { name, arguments: text } };
}

function head(object: string, { id, createdS, modelName }: AnswerContext) {
  return { id, object, created: createdS, model: modelName };
}
