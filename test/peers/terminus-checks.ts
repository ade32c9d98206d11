import { proveTokens, type SampleResult, type TrialRecord } from '../../services/gateway/index.ts';
import type { TrialRun } from '../../services/harbor/index.ts';

/** One thing that must hold; `problem` is null when it does, and `words` may say by how much. */
export type Check = { readonly what: string; readonly problem: string | null; readonly words?: string };

export type Played = {
  readonly run: TrialRun;
  readonly record: TrialRecord;
  /** What the server answered, call by call. */
  readonly issued: readonly SampleResult[];
  /** The last call's prompt and answer. */
  readonly whole: Int32Array;
  /** The server's own score of each token of `whole`, in nats. */
  readonly rescored: Float64Array;
};

type Game = {
  readonly name: string;
  /** Any of these. */
  readonly ends: readonly string[];
  readonly contextLimitTokens: number;
};

/** Too few calls would show nothing of how prompts go on. */
const FEWEST_CALLS = 2;

export function checkPlayed(game: Game, { run, record, issued, whole, rescored }: Played): readonly Check[] {
  const check = (what: string, problem: string | null, words?: string): Check => ({
    what: `${game.name}: ${what}`,
    problem,
    ...(words === undefined ? {} : { words }),
  });
  const { spans } = record;
  const graded = run.executed && game.ends.includes(run.stopReason ?? '') ? null : `${run.stopReason}, ${run.infraReason ?? 'graded'}`;
  const sizes = `${spans.length} calls, ${record.sampledTokens} tokens sampled, ${record.lengthStops} cut off, ${whole.length} at the end`;
  const worst = { nats: 0 };
  return [
    check(`ends by ${game.ends.join(' or ')} and is graded`, graded, sizes),
    check('has calls enough', spans.length >= FEWEST_CALLS ? null : `${spans.length} calls`),
    check('every recorded id and log-probability is the server’s', sameAsIssued(record, issued)),
    check('every prompt is the one before, what was sampled, and more', extending(record)),
    check(
      'scored again in its final context, every token has the log-probability it was sampled with',
      rescores(record, rescored, worst),
      `${worst.nats.toExponential(1)} nats off at most`,
    ),
    check(
      'the window holds',
      spans.every(({ prompt, sampled }) => prompt.length + sampled.length <= game.contextLimitTokens) ? null : 'a call is longer',
    ),
    check('harbor recorded what the gateway did, but for answers that were cut off', sameAsHarbor(run, record)),
  ];
}

export function checkFolder({
  sandboxes,
  files,
  keys,
}: {
  sandboxes: readonly string[];
  files: string;
  keys: readonly string[];
}): readonly Check[] {
  const leaked = keys.filter((key) => files.includes(key)).length;
  return [
    { what: 'no sandbox is left', problem: sandboxes.length === 0 ? null : sandboxes.join(', ') },
    { what: 'no key is in a file', problem: leaked === 0 ? null : `${leaked} of ${keys.length} are` },
  ];
}

/** Prints each check and whether it holds; the number of those that do not. */
export function reportChecks(of: string, checks: readonly Check[]): number {
  for (const { what, problem, words } of checks) {
    const more = [problem, words].filter(Boolean).join('; ');
    console.log(`  ${problem === null ? 'holds ' : 'failed'}  ${of}, ${what}${more === '' ? '' : ` (${more})`}`);
  }
  return checks.filter(({ problem }) => problem !== null).length;
}

function sameAsIssued({ spans }: TrialRecord, issued: readonly SampleResult[]): string | null {
  if (spans.length !== issued.length) return `${spans.length} calls recorded, ${issued.length} answered`;
  const wrong = spans.findIndex(({ sampled, logprobs, stop }, call) => {
    const answer = issued[call];
    return !same(sampled, answer?.tokens) || !same(logprobs, answer?.logprobs) || stop !== answer?.stop;
  });
  return wrong < 0 ? null : `call ${wrong} differs`;
}

function extending({ spans, fragments }: TrialRecord): string | null {
  if (JSON.stringify(fragments) !== '{"first":1}') return `fragments ${JSON.stringify(fragments)}`;
  const wrong = spans.findIndex(({ prompt }, call) => {
    const before = spans[call - 1];
    return (
      before !== undefined && !same(prompt.subarray(0, before.prompt.length + before.sampled.length), [...before.prompt, ...before.sampled])
    );
  });
  return wrong < 0 ? null : `call ${wrong} does not`;
}

function rescores({ spans }: TrialRecord, rescored: Float64Array, worst: { nats: number }): string | null {
  for (const [call, { prompt, sampled, logprobs }] of spans.entries()) {
    const recomputed = rescored.subarray(prompt.length, prompt.length + sampled.length);
    const { ok, reason, maxAbsDiffNats } = proveTokens({ sampled, issued: logprobs, recomputed });
    worst.nats = Math.max(worst.nats, maxAbsDiffNats);
    if (!ok) return `call ${call}: ${reason}`;
  }
  return null;
}

function sameAsHarbor({ rollout }: TrialRun, { spans }: TrialRecord): string | null {
  const whole = spans.filter(({ stop }) => stop === 'stop');
  if (rollout.problem !== null) return rollout.problem;
  if (rollout.turns.length !== whole.length) return `${rollout.turns.length} turns of harbor's, ${whole.length} of the gateway's`;
  const wrong = rollout.turns.findIndex(
    ({ prompt, sampled }, turn) => !same(prompt, whole[turn]?.prompt) || !same(sampled, whole[turn]?.sampled),
  );
  return wrong < 0 ? null : `turn ${wrong} differs`;
}

function same(one: ArrayLike<number>, other: ArrayLike<number> | undefined): boolean {
  return other !== undefined && one.length === other.length && Array.from(one).every((value, index) => Object.is(value, other[index]));
}
