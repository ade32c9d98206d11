import { GatewayError, invalidRequest } from './errors.ts';
import { arrayElementTexts } from './json-text.ts';
import type { ChatMessage, ChatRenderer, ToolDefinition } from './renderer.ts';
import { type WireMessage, WireRequest } from './wire-schema.ts';

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
  /** Those that the model is shown: with the tool choice `none` it is shown none, and so calls none. */
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
  const hasTools = (wire.tools?.length ?? 0) > 0 && wire.tool_choice !== 'none';
  return {
    messages: wire.messages.map(toMessage),
    maxTokens: wire.max_completion_tokens ?? wire.max_tokens ?? null,
    temperature: wire.temperature ?? null,
    stop: wire.stop ?? [],
    logprobs: wire.logprobs ?? false,
    tokenIds: wire.return_token_ids ?? false,
    stream: wire.stream ?? false,
    streamUsage: wire.stream_options?.include_usage ?? false,
    tools: hasTools ? arrayElementTexts(text, 'tools').map((json) => ({ json })) : [],
  };
}

/** What this trial's template and sampling settings cannot do is refused by name, never dropped. @throws GatewayError 400 */
export function refuseUnsupported(request: ChatRequest, trial: { readonly renderer: ChatRenderer; readonly temperature: number }): void {
  const { renderer } = trial;
  const { messages, temperature, tools } = request;
  if (renderer.noTools !== null) {
    const why = `tools cannot be used with the renderer "${renderer.name}": ${renderer.noTools}`;
    if (tools.length > 0) throw invalidRequest('tools', `tools: ${why}. Send the request without them.`);
    const index = messages.findIndex(({ role, toolCalls }) => role === 'tool' || toolCalls !== undefined);
    if (index >= 0) throw invalidRequest(`messages.${index}`, `messages.${index}: ${why}.`);
  }
  if (temperature !== null && temperature !== trial.temperature)
    throw invalidRequest(
      'temperature',
      `temperature: this run samples at ${trial.temperature}, but the request asks for ${temperature}. Send ${trial.temperature} or leave it out.`,
    );
  if (messages.at(-1)?.role === 'assistant')
    throw invalidRequest('messages', 'messages: the last message is from the assistant; continuing an assistant message is not supported.');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
  }
}

function toMessage(wire: WireMessage): ChatMessage {
  const { role, content, tool_calls: calls, tool_call_id: toolCallId } = wire;
  const reasoning = wire.reasoning_content || wire.reasoning || wire.thinking;
  return {
    role: role === 'developer' ? 'system' : role,
    content: typeof content === 'string' ? content : (content ?? []).map((part) => part.text).join(''),
    ...(reasoning ? { reasoning } : {}),
    ...(calls?.length ? { toolCalls: calls.map(({ id, function: f }) => ({ id, name: f.name, arguments: f.arguments })) } : {}),
    ...(toolCallId ? { toolCallId } : {}),
  };
}
