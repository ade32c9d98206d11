import type { ExceptionRow } from './outcome-table.ts';
import type { ResultJson } from './result-json.ts';

/** The words of our own small agent where they differ. */
const OWN_WORDS: Readonly<Record<string, string>> = { done: 'submitted' };

const COMPLETION_CALL = 'mark_task_complete';

/**
 * Why the agent stopped: `submitted`, `max_turns`, `budget` (its time was over), `provider_error`, `refused`, `error`, or the agent's own word;
 * null when nothing says. What the grader did afterwards does not change it, and work that was submitted on the last turn is submitted.
 */
export function stopReason(
  { agent_result }: Pick<ResultJson, 'agent_result'>,
  exception: ExceptionRow | null,
  { maxTurns, trajectory }: { readonly maxTurns: number; readonly trajectory: string | null },
): string | null {
  if (exception !== null && exception.stop !== null) return exception.stop;
  const { stop, n_episodes: turns } = agent_result?.metadata ?? {};
  if (typeof stop === 'string') return OWN_WORDS[stop] ?? stop;
  if (typeof turns !== 'number' || !Number.isInteger(turns)) return null;
  if (declaresCompletion(trajectory)) return 'submitted';
  return turns >= maxTurns ? 'max_turns' : 'error';
}

/** True when the last step of the agent in an ATIF trajectory calls for completion, alone or among other calls. */
function declaresCompletion(trajectory: string | null): boolean {
  if (trajectory === null) return false;
  const steps = field(json(trajectory), 'steps');
  const last = Array.isArray(steps) ? steps.findLast((step) => field(step, 'source') === 'agent') : null;
  const calls = field(last, 'tool_calls');
  return Array.isArray(calls) && calls.some((call) => field(call, 'function_name') === COMPLETION_CALL);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}
