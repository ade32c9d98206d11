import type { FragmentCause } from '../../services/gateway/index.ts';
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

/** What the agent asks next, and as what a call that does so may be recorded. A parallel move asks twice. */
export type Next = { readonly history: readonly WireMessage[]; readonly causes: readonly (FragmentCause | null)[] };

/** `before` is what the answer was given to. */
export function nextHistories(before: readonly WireMessage[], answer: WireMessage, { keeping, move, observation }: PlannedStep): Next[] {
  const own = kept(answer, keeping);
  const on = [...before, own, ...observed(answer, own, observation)];
  const [system, task] = before;
  const user = (content: string): WireMessage => ({ role: 'user', content });
  const rewrites: readonly FragmentCause[] = ['template_rewrites', 'template_refuses'];
  switch (move) {
    case 'retry':
      return [{ history: before, causes: ['retry'] }];
    case 'parallel':
      return [
        { history: on, causes: [null, 'retry'] },
        { history: on, causes: [null, 'retry'] },
      ];
    case 'branch': {
      const last = before.at(-1);
      const other = before.slice(0, -1).concat(last ? [{ ...last, content: `Or: ${observation}` }] : []);
      return [
        {
          history: other,
          causes: before.length > 2 ? ['branch', 'edited_history', 'compaction'] : ['no_match', 'edited_history', 'compaction'],
        },
      ];
    }
    case 'edit':
      return [
        {
          history: [...before, { role: 'assistant', content: `Rewritten: ${observation}` }, user('Well?')],
          causes: ['edited_history', 'compaction', ...rewrites],
        },
      ];
    case 'compact':
      return [
        {
          history: [system, task, user(`Summary: ${observation}`)].filter((one) => one !== undefined),
          causes: ['compaction', 'edited_history'],
        },
      ];
    case 'side':
      return [
        { history: [user(`Title for: ${observation}`)], causes: ['no_match', 'retry'] },
        { history: on, causes: [null] },
      ];
    case 'system_in_the_middle':
      return [{ history: [...on, { role: 'system', content: `Note: ${observation}` }, user('Go on.')], causes: [null, ...rewrites] }];
    case 'foreign_assistant':
      return [{ history: [...on, { role: 'assistant', content: 'As I said.' }, user('Go on.')], causes: [null] }];
    default:
      return [{ history: on, causes: [null] }];
  }
}
