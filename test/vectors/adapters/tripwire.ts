import { parseRunConfig } from '../../../core/config/parse.ts';
import { asBaseline, type Breach, breachesOf, checkTripwire, countEmptyStep, guardsAfterKill } from '../../../core/measures/guards.ts';
import { batchHealth, trialTokens } from '../../../core/measures/health.ts';
import { type GuardState, NO_GUARD_STATE } from '../../../core/run/results.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { type Sections, toToml } from './sections.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};
const METRIC = { entropy: 'entropy_per_token', length: 'mean_generation_tokens' } as const;
const named = (breaches: readonly Breach[]) => breaches.map((breach) => ({ ...breach, metric: METRIC[breach.metric] }));
const thresholds = (tripwire: Sections[string]) => {
  const parsed = parseRunConfig(toToml({ tripwire }), 'tripwire');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.config.tripwire;
};

function health(input: { trials: { calls: number[][] }[] }, expected: unknown): Finding {
  const spans = (calls: number[][]) => calls.map((c) => ({ sampled: new Int32Array(c.length), logprobs: Float64Array.from(c) }));
  const measured = batchHealth(input.trials.map((trial) => trialTokens(spans(trial.calls))));
  return compare(expected, {
    episodes: measured.episodes,
    sampled_tokens: measured.sampledTokens,
    entropy_per_token: measured.entropyNatsPerToken,
    mean_generation_tokens: measured.sampledTokensPerEpisode,
    usable_as_baseline: asBaseline(0, measured) !== null,
  });
}

type Row = { entropy_per_token: number | null; mean_generation_tokens: number | null };
const measured = (row: Row) => ({ entropyNatsPerToken: row.entropy_per_token, sampledTokensPerEpisode: row.mean_generation_tokens });

type BreachCase = Row & { tripwire: Sections[string]; baseline: { entropy_per_token: number; mean_generation_tokens: number } };
function breaches(input: BreachCase, expected: unknown): Finding {
  const baseline = {
    entropyNatsPerToken: input.baseline.entropy_per_token,
    sampledTokensPerEpisode: input.baseline.mean_generation_tokens,
  };
  return compare(expected, { breaches: named(breachesOf(measured(input), baseline, thresholds(input.tripwire))) });
}

type Entry = Row | { resume_at_step: number };
/** Which checkpoint a kill goes back to is not compared: ours is the last one before the streak. */
function sequence(input: { tripwire: Sections[string]; rows: Entry[] }, expected: { steps: Record<string, unknown>[] }): Finding {
  const config = thresholds(input.tripwire);
  let guard: GuardState = NO_GUARD_STATE;
  let step = 0;
  let killed = false;
  const ours = input.rows.map((row) => {
    if ('resume_at_step' in row) {
      step = row.resume_at_step;
      if (killed) guard = guardsAfterKill(guard);
      return { event: 'resume', baseline_kept: guard.baseline !== null };
    }
    const check = checkTripwire(guard, step, measured(row), config);
    guard = check.guard;
    killed = check.kill;
    const by = check.breaches.filter((breach) => breach.level === 'kill').map((breach) => METRIC[breach.metric]);
    return {
      step: step++,
      baseline_step: guard.baseline?.step ?? null,
      entropy_ratio: check.entropyRatio,
      length_ratio: check.lengthRatio,
      ...(killed ? { killed_by: by, consecutive: guard.killStreak } : {}),
      breaches: named(check.breaches),
      kill_streak: guard.killStreak,
      abort: killed,
    };
  });
  return compare(
    expected.steps.map(({ checkpoint_saved_at: _, ...rest }) => rest),
    ours,
  );
}

function emptyBatches(input: { rows: { trained_datums: number }[] }, expected: unknown): Finding {
  let guard: GuardState = NO_GUARD_STATE;
  const steps = input.rows.map((row) => {
    const counted = countEmptyStep(guard, row.trained_datums);
    guard = counted.guard;
    return { streak: guard.emptyStreak, abort: counted.stop };
  });
  return compare(expected, { steps });
}

export const tripwire: FamilyAdapter = { family: 'tripwire', kinds: { health, breaches, sequence, empty_batches: emptyBatches } };
