import type { TrialId } from '../../core/ids.ts';
import { type SeededRandom, seededRandom } from '../../core/random/seeded.ts';
import type { Episode, Span } from '../../core/tokens/span.ts';

export const TURNS = 40;
export const TOKENS_PER_TURN = 1000;
/** Half of a turn is sampled, half is what the agent's environment answered. */
const SAMPLED_PER_TURN = TOKENS_PER_TURN / 2;
const VOCABULARY = 150_000;

/**
 * An episode as the gateway records it: every call holds its whole prompt in an array of its own, so that 40 turns of 1,000 tokens hold
 * 800,000 prompt ids for a conversation of 40,000.
 */
export function conversation(seed: number): Episode {
  const random = seededRandom(BigInt(seed));
  const tokens = Int32Array.from({ length: TURNS * TOKENS_PER_TURN }, () => random.below(VOCABULARY));
  const spans = Array.from({ length: TURNS }, (_, turn): Span => {
    const end = (turn + 1) * TOKENS_PER_TURN;
    return {
      callIndex: turn,
      prompt: tokens.slice(0, end - SAMPLED_PER_TURN),
      sampled: tokens.slice(end - SAMPLED_PER_TURN, end),
      logprobs: logprobs(SAMPLED_PER_TURN, random),
      stop: 'stop',
      sampler: 'step-0001',
    };
  });
  return { trial: `bench-t${seed}` as TrialId, spans, stopReason: null };
}

/** What a teacher answers for a sequence: a log-probability for every token but the first. */
export function teacherAnswer(length: number, seed: number): Float64Array {
  const row = logprobs(length, seededRandom(BigInt(seed)));
  row[0] = Number.NaN;
  return row;
}

/** In nats, from −4 to 0. */
function logprobs(length: number, random: SeededRandom): Float64Array {
  return Float64Array.from({ length }, () => (-4 * random.below(2 ** 20)) / 2 ** 20);
}
