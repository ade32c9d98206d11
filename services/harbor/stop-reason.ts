import type { ResultJson, TrialException } from './result-json.ts';

/** Exceptions of the grader: they come after the agent ended, and trying again meets the same grader. */
const GRADER_EXCEPTIONS: ReadonlySet<string> = new Set([
  'VerifierTimeoutError',
  'RewardFileNotFoundError',
  'RewardFileEmptyError',
  'VerifierOutputParseError',
]);

/** What an exception says of how the agent stopped; any other is an `error`. */
const STOPPED_BY: Readonly<Record<string, string>> = {
  AgentTimeoutError: 'budget',
  ContextLengthExceededError: 'provider_error',
  OutputLengthExceededError: 'provider_error',
};

/** The words of our own small agent where they differ. */
const OWN_WORDS: Readonly<Record<string, string>> = { done: 'submitted' };

const COMPLETION_CALL = 'mark_task_complete';

export function isGraderException(exception: TrialException | null): boolean {
  return exception !== null && GRADER_EXCEPTIONS.has(exception.exception_type);
}

/**
 * Why the agent stopped: `submitted`, `max_turns`, `budget` (its time was over), `provider_error`, `error`, or the agent's own word;
 * null when nothing says. What the grader did afterwards does not change it, and work that was submitted on the last turn is submitted.
 */
export function stopReason(
  { agent_result }: Pick<ResultJson, 'agent_result'>,
  exception: TrialException | null,
  { maxTurns, trajectory }: { readonly maxTurns: number; readonly trajectory: string | null },
): string | null {
  if (exception !== null && !isGraderException(exception)) return STOPPED_BY[exception.exception_type] ?? 'error';
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
