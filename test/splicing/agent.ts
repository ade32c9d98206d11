import type { Keeping, PlannedStep } from './arbitraries.ts';

/** Messages as agents send them. */
export type WireCall = {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
};
export type WireMessage = {
  readonly role: string;
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly WireCall[];
  readonly tool_call_id?: string;
};

export const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'bash',
      description: 'Runs a command.',
      parameters: {
        type: 'object',
        properties: {
          cmd: { type: 'string', description: 'The command.' },
          n: { type: 'integer', description: 'How often.' },
          deep: { type: 'boolean', description: 'All folders.' },
        },
        required: ['cmd'],
      },
    },
  },
] as const;

/** The answer as the agent writes it into its history. */
export function kept(answer: WireMessage, { trim, reasoning, calls }: Keeping): WireMessage {
  const text = trim ? (answer.content?.trim() ?? null) : answer.content;
  const thought = answer.reasoning_content;
  const inText = reasoning === 'in_text' && thought !== undefined;
  return {
    role: 'assistant',
    content: inText ? `<think>\n${thought}\n</think>\n\n${text ?? ''}` : text,
    ...(reasoning === 'field' && thought !== undefined ? { reasoning_content: thought } : {}),
    ...(answer.tool_calls === undefined || calls === 'left_out'
      ? {}
      : { tool_calls: answer.tool_calls.flatMap((call) => keptCall(call, calls)) }),
  };
}

function keptCall(call: WireCall, calls: Keeping['calls']): WireCall[] {
  if (calls === 'emptied') return [];
  if (calls === 'renamed') return [{ ...call, id: `mine-${call.id}` }];
  if (calls !== 'rewritten') return [call];
  const backwards = Object.fromEntries(Object.entries(JSON.parse(call.function.arguments) as object).reverse());
  return [{ ...call, function: { ...call.function, arguments: JSON.stringify(backwards, null, 1) } }];
}

/** What the agent tells the model after an answer that it kept. */
export function observed(answer: WireMessage, own: WireMessage, observation: string): WireMessage[] {
  const calls = own.tool_calls?.length ? own.tool_calls : (answer.tool_calls ?? []);
  if (calls.length === 0) return [{ role: 'user', content: observation }];
  return calls.map(({ id }, index) => ({ role: 'tool', content: `${index}: ${observation}`, tool_call_id: id }));
}

/** The history of the next call; of a parallel one, two of them. `before` is what the answer was given to. */
export function nextHistories(before: readonly WireMessage[], answer: WireMessage, step: PlannedStep): WireMessage[][] {
  const own = kept(answer, step.keeping);
  const after = observed(answer, own, step.observation);
  const on = [...before, own, ...after];
  const head = before.slice(0, 2);
  switch (step.move) {
    case 'retry':
      return [[...before]];
    case 'parallel':
      return [on, on];
    case 'branch':
      return [[...head, { role: 'assistant', content: 'Fine.' }, { role: 'user', content: `Or: ${step.observation}` }]];
    case 'edit':
      return [[...before, { role: 'assistant', content: `Rewritten: ${step.observation}` }, { role: 'user', content: 'Well?' }]];
    case 'compact':
      return [[...head.slice(0, 1), { role: 'user', content: `Summary: ${step.observation}` }]];
    case 'side':
      return [[{ role: 'user', content: `Title for: ${step.observation}` }], on];
    case 'system_in_the_middle':
      return [
        [
          ...on.slice(0, -after.length),
          ...after,
          { role: 'system', content: `Note: ${step.observation}` },
          { role: 'user', content: 'Go on.' },
        ],
      ];
    case 'foreign_assistant':
      return [[...on, { role: 'assistant', content: 'As I said.' }, { role: 'user', content: 'Go on.' }]];
    default:
      return [on];
  }
}
