import { createHash } from 'node:crypto';
import type { ChatMessage, ChatRenderer, RendererFingerprint, ToolDefinition } from '../renderer.ts';
import { TemplateRefusal } from '../template/template.ts';

/** One of each thing a template may treat specially. Changing it changes every fingerprint. */
const PROBE: readonly ChatMessage[] = [
  { role: 'system', content: 'You are careful.' },
  { role: 'user', content: ' List the files.\nThen stop. ' },
  { role: 'assistant', content: 'ls' },
  { role: 'user', content: '[0] a b' },
];

/** The same for a template that knows tools: reasoning, a call and its result, and a later turn. */
const TOOL_PROBE: readonly ChatMessage[] = [
  { role: 'system', content: 'You are careful.' },
  { role: 'user', content: 'List the files.' },
  {
    role: 'assistant',
    content: '',
    reasoning: 'One call.',
    toolCalls: [{ id: 'call_0', name: 'bash', arguments: '{"command": "ls -a"}' }],
  },
  { role: 'tool', content: 'a b', toolCallId: 'call_0' },
  { role: 'assistant', content: 'There are two.', reasoning: 'Two files.' },
  { role: 'user', content: 'Thanks.' },
];
const TOOLS: readonly ToolDefinition[] = [
  {
    json: '{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}',
  },
];

/**
 * Digest of what the template does: ids of probe conversations, with and without generation prompt, and the stop ids. By behaviour, not by
 * name: two names for one template agree. A conversation that the template does not take says something about it, too.
 */
export async function fingerprintOf(renderer: Omit<ChatRenderer, 'fingerprint'>): Promise<RendererFingerprint> {
  const template = createHash('sha256').update(JSON.stringify(renderer.stopTokens));
  const probes = [
    { messages: PROBE, tools: [] },
    // Up to the tool's result, where the model speaks next, and whole.
    ...(renderer.noTools === null ? [TOOL_PROBE.slice(0, 4), TOOL_PROBE].map((messages) => ({ messages, tools: TOOLS })) : []),
  ];
  for (const { messages, tools } of probes)
    for (const addGenerationPrompt of [true, false])
      template.update(`|${addGenerationPrompt}|`).update(await rendered(renderer, messages, { tools, addGenerationPrompt }));
  return { template: template.digest('hex') };
}

async function rendered(renderer: Pick<ChatRenderer, 'render'>, ...asked: Parameters<ChatRenderer['render']>): Promise<string> {
  try {
    return (await renderer.render(...asked)).join(',');
  } catch (error) {
    if (error instanceof TemplateRefusal) return `refused: ${error.message}`;
    throw error;
  }
}
