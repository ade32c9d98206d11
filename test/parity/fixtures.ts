import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { TemplateInput, TemplateMessage } from '../../services/gateway/template/template.ts';

/** A conversation and how it is rendered. */
export type Case = TemplateInput & { readonly kwargs: Readonly<Record<string, unknown>> };

/** What Python makes of a case; null where it raises. */
export type Expected = Int32Array | null;

const Call = z.object({ id: z.string(), name: z.string(), arguments: z.string() });
const Message = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string(),
  reasoning: z.string().exactOptional(),
  toolCalls: z.array(Call).exactOptional(),
  toolCallId: z.string().exactOptional(),
  argumentsAs: z.enum(['object', 'text']).exactOptional(),
  emptyContentAs: z.enum(['text', 'null']).exactOptional(),
}) satisfies z.ZodType<TemplateMessage>;
const Conversations = z.array(
  z.object({ messages: z.array(Message), toolset: z.int(), addGenerationPrompt: z.boolean(), kwargs: z.record(z.string(), z.unknown()) }),
);

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'parity');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

/** The texts that every vocabulary is tried with. */
export const parityTexts = (): readonly string[] => z.array(z.string()).parse(JSON.parse(read('texts.json')));

/** The conversations that every template is tried with. */
export function parityConversations(): readonly Case[] {
  const toolsets = z.array(z.array(z.string())).parse(JSON.parse(read('toolsets.json')));
  return Conversations.parse(JSON.parse(read('conversations.json'))).map(({ toolset, ...rest }) => {
    const tools = toolsets[toolset];
    if (tools === undefined) throw new Error(`conversations.json: there is no toolset ${toolset}`);
    return { ...rest, tools: tools.map((json) => ({ json })) };
  });
}

/** The expected ids of a file: a line says how many ids it shares with the start of the line before, and what comes then. */
export function expectedIds(name: string): readonly Expected[] {
  let before = new Int32Array();
  return read(name)
    .trimEnd()
    .split('\n')
    .map((line) => {
      if (line === '!') return null;
      const [shared = '', rest = ''] = line.split(':');
      const ids = Int32Array.from([...before.subarray(0, Number(shared)), ...rest.split(' ').filter(Boolean).map(Number)]);
      before = ids;
      return ids;
    });
}
