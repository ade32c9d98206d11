import { z } from 'zod';
import { GatewayError, invalidRequest } from './errors.ts';
import type { ChatMessage, ChatRenderer, ToolDefinition } from './renderer.ts';

const TextPart = z.object({ type: z.literal('text'), text: z.string() });
const Content = z.union([z.string(), z.array(TextPart)], { error: 'only text content is supported: a string, or parts of type "text"' });

const WireToolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });

const WireMessage = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: Content.nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(WireToolCall).nullish(),
  tool_call_id: z.string().nullish(),
});

/** Keys that are not listed are dropped: clients send many that mean nothing here (top_p, seed, user, …). */
const WireRequest = z.object({
  messages: z.array(WireMessage).min(1, 'at least one message is needed'),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  temperature: z.number().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  n: z.literal(1, { error: 'only n = 1 is supported' }).nullish(),
  logprobs: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z.array(z.record(z.string(), z.unknown())).nullish(),
});

/** A chat completion request, parsed. `maxTokens` is what the agent asked for, before any clamp. */
export type ChatRequest = {
  readonly messages: readonly ChatMessage[];
  readonly maxTokens: number | null;
  readonly temperature: number | null;
  readonly stop: readonly string[];
  readonly logprobs: boolean;
  readonly tokenIds: boolean;
  readonly stream: boolean;
  readonly streamUsage: boolean;
  readonly tools: readonly ToolDefinition[];
};

/** @throws GatewayError 400 that names the first bad field. */
export function parseChatRequest(text: string): ChatRequest {
  const result = WireRequest.safeParse(parseJson(text));
  if (!result.success) {
    const issue = result.error.issues[0];
    const field = issue?.path.join('.') || 'body';
    throw invalidRequest(field, `${field}: ${issue?.message ?? 'invalid'}`);
  }
  const wire = result.data;
  return {
    messages: wire.messages.map(toMessage),
    maxTokens: wire.max_completion_tokens ?? wire.max_tokens ?? null,
    temperature: wire.temperature ?? null,
    stop: typeof wire.stop === 'string' ? [wire.stop] : (wire.stop ?? []),
    logprobs: wire.logprobs ?? false,
    tokenIds: wire.return_token_ids ?? false,
    stream: wire.stream ?? false,
    streamUsage: wire.stream_options?.include_usage ?? false,
    tools: (wire.tools ?? []).map((tool) => ({ json: JSON.stringify(tool) })),
  };
}

/** What this trial's template and sampling settings cannot do is refused by name, never dropped. @throws GatewayError 400 */
export function refuseUnsupported(request: ChatRequest, trial: { readonly renderer: ChatRenderer; readonly temperature: number }): void {
  const { renderer } = trial;
  const { messages, temperature, tools } = request;
  if (!renderer.supportsTools) {
    if (tools.length > 0)
      throw invalidRequest('tools', `tools: the template "${renderer.name}" has no tools. Send the request without them.`);
    const index = messages.findIndex(({ role, toolCalls }) => role === 'tool' || toolCalls !== undefined);
    if (index >= 0)
      throw invalidRequest(`messages.${index}`, `messages.${index}: the template "${renderer.name}" has no tool messages or calls.`);
  }
  if (temperature !== null && temperature !== trial.temperature)
    throw invalidRequest(
      'temperature',
      `temperature: this run samples at ${trial.temperature}, but the request asks for ${temperature}. Send ${trial.temperature} or leave it out.`,
    );
  if (messages.at(-1)?.role === 'assistant')
    throw invalidRequest('messages', 'messages: the last message is from the assistant; continuing an assistant message is not supported.');
}

/** A stop string can only be honoured token-exactly when it is a single id. @throws GatewayError 400 */
export async function extraStopTokens(stop: readonly string[], renderer: ChatRenderer): Promise<number[]> {
  const ids: number[] = [];
  for (const text of stop) {
    const [id, ...rest] = await renderer.tokenize(text);
    if (id === undefined || rest.length > 0 || renderer.vocabulary.idToString(id) !== text)
      throw invalidRequest('stop', `stop: ${JSON.stringify(text)} is not exactly one token of "${renderer.tokenizer}". Leave it out.`);
    ids.push(id);
  }
  return ids;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new GatewayError(400, 'invalid_json', 'The request body is not valid JSON.');
  }
}

function toMessage(wire: z.infer<typeof WireMessage>): ChatMessage {
  const { role, content, reasoning_content: reasoning, tool_calls: calls, tool_call_id: toolCallId } = wire;
  return {
    role: role === 'developer' ? 'system' : role,
    content: typeof content === 'string' ? content : (content ?? []).map((part) => part.text).join(''),
    ...(reasoning ? { reasoning } : {}),
    ...(calls?.length ? { toolCalls: calls.map(({ id, function: f }) => ({ id, name: f.name, arguments: f.arguments })) } : {}),
    ...(toolCallId ? { toolCallId } : {}),
  };
}
