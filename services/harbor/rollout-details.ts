/** One model call as harbor recorded it: the whole prompt, what was sampled, and ln p of each sampled token (nats). */
export type RolloutTurn = {
  readonly callIndex: number;
  readonly prompt: Int32Array;
  readonly sampled: Int32Array;
  readonly logprobs: Float64Array;
};

/** `problem` says why recorded turns were dropped; null when they are fine, or when there are none. */
export type RolloutTurns = { readonly turns: readonly RolloutTurn[]; readonly problem: string | null };

const LISTS = ['prompt_token_ids', 'completion_token_ids', 'logprobs'] as const;

/** A token id written as a decimal number (`1.0`), which JSON.parse makes an integer. */
const DECIMAL_TOKEN_ID = /"(?:prompt|completion)_token_ids"\s*:\s*\[[\s\d,[\]-]*[.eE]/;

/**
 * Reads harbor's `agent_result.rollout_details`. Only its first segment is the conversation; later ones are side chats. harbor fills the
 * three lists of a segment independently, so that one missing entry shifts all that follow: unless every turn is complete, its ids are
 * integers and its log-probabilities finite and as many as its tokens, all turns of the trial are dropped. `source` is the text of the file.
 */
export function readRolloutTurns(details: unknown, source: string): RolloutTurns {
  const segment: unknown = Array.isArray(details) ? details[0] : null;
  if (segment == null) return { turns: [], problem: null };
  const dropped = (problem: string): RolloutTurns => ({ turns: [], problem: `rollout_details: ${problem}` });
  if (typeof segment !== 'object') return dropped('the first segment is not an object');
  if (DECIMAL_TOKEN_ID.test(source)) return dropped('a token id is not an integer');
  const lists = LISTS.map((name) => (segment as Record<string, unknown>)[name]);
  if (!lists.every((list) => Array.isArray(list))) return dropped(`needs the lists ${LISTS.join(', ')}`);
  const [prompts, completions, logprobs] = lists as [unknown[], unknown[], unknown[]];
  if (prompts.length !== completions.length || prompts.length !== logprobs.length)
    return dropped(`has ${prompts.length} prompts, ${completions.length} completions and ${logprobs.length} lists of log-probabilities`);
  const turns: RolloutTurn[] = [];
  for (const [callIndex, prompt] of prompts.entries()) {
    const turn = { prompt: tokenIds(prompt), sampled: tokenIds(completions[callIndex]), logprobs: finite(logprobs[callIndex]) };
    if (turn.prompt === null || turn.sampled === null) return dropped(`turn ${callIndex}: token ids must be lists of integers`);
    if (turn.logprobs?.length !== turn.sampled.length)
      return dropped(`turn ${callIndex}: needs one finite log-probability for each of ${turn.sampled.length} sampled tokens`);
    turns.push({ callIndex, prompt: turn.prompt, sampled: turn.sampled, logprobs: turn.logprobs });
  }
  return { turns, problem: null };
}

function tokenIds(list: unknown): Int32Array | null {
  const usable = Array.isArray(list) && list.every((id) => Number.isInteger(id) && id >= 0 && id <= 0x7fffffff);
  return usable ? Int32Array.from(list) : null;
}

function finite(list: unknown): Float64Array | null {
  return Array.isArray(list) && list.every((value) => Number.isFinite(value)) ? Float64Array.from(list) : null;
}
