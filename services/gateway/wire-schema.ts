import { z } from 'zod';

/** A list that is read up to its first bad entry: one with millions of them would otherwise become millions of errors. */
function listOf<T>(entry: z.ZodType<T>) {
  return z.array(z.unknown()).transform((entries, context): T[] => {
    const read: T[] = [];
    for (const [index, one] of entries.entries()) {
      const { success, data, error } = entry.safeParse(one);
      if (!success) {
        for (const { path, message } of error.issues) context.addIssue({ code: 'custom', path: [index, ...path], message });
        return z.NEVER;
      }
      read.push(data);
    }
    return read;
  });
}

const TextPart = z.object({ type: z.literal('text'), text: z.string() });
const Content = z.union([z.string(), listOf(TextPart)], { error: 'only text content is supported: a string, or parts of type "text"' });

const WireToolCall = z.object({
  id: z.string(),
  function: z.object({ name: z.string(), arguments: z.string({ error: 'must be a string of JSON' }) }),
});

const WireMessage = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: Content.nullish(),
  // Servers differ in what they call it, and agents send back what they were given.
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  thinking: z.string().nullish(),
  tool_calls: listOf(WireToolCall).nullish(),
  tool_call_id: z.string().nullish(),
});
export type WireMessage = z.infer<typeof WireMessage>;

const WireTool = z.object({
  type: z.literal('function', { error: 'only tools of type "function" are supported' }),
  function: z.object({ name: z.string() }),
});

/** Each is looked for in every answer, and encoded before it. */
const MOST_STOPS = 64;
const LONGEST_STOP = 1024;
const StopText = z
  .string()
  .min(1, 'a stop string must not be empty')
  .max(LONGEST_STOP, `a stop string may have ${LONGEST_STOP} characters`);
const StopTexts = listOf(StopText).refine(({ length }) => length <= MOST_STOPS, `at most ${MOST_STOPS} stop strings can be looked for`);

const TOOL_CHOICE = 'a tool call cannot be forced: send "auto" or "none", or leave it out';
const RESPONSE_FORMAT = 'answers cannot be held to a format: send {"type":"text"} or leave it out, and ask for JSON in the messages';

/**
 * Keys that are not listed are dropped: clients send many that mean nothing here (top_p, seed, user, top_logprobs, session_id, …).
 * What would change an answer in a way that an agent relies on is refused by name instead.
 */
export const WireRequest = z.object({
  messages: listOf(WireMessage).refine((messages) => messages.length > 0, 'at least one message is needed'),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  temperature: z.number().nullish(),
  stop: z.preprocess((stop) => (typeof stop === 'string' ? [stop] : stop), StopTexts.nullish()),
  n: z.literal(1, { error: 'only n = 1 is supported' }).nullish(),
  logprobs: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  tools: listOf(WireTool).nullish(),
  tool_choice: z.enum(['auto', 'none'], { error: TOOL_CHOICE }).nullish(),
  functions: z.array(z.unknown()).max(0, 'functions are not supported: send them as tools').nullish(),
  response_format: z.object({ type: z.literal('text', { error: RESPONSE_FORMAT }) }).nullish(),
});
