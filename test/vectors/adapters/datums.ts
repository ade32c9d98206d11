import type { TrialId } from '../../../core/ids.ts';
import { at } from '../../../core/lists.ts';
import { computeAdvantages } from '../../../core/tokens/advantages.ts';
import { buildDatums, spanProblem } from '../../../core/tokens/datums.ts';
import type { Datum } from '../../../core/tokens/span.ts';
import { keepTeacherRow } from '../../../core/tokens/teacher-row.ts';
import { TokenError } from '../../../core/tokens/token-error.ts';
import { buildTopkReplicas, renormalize, topkToWire } from '../../../core/tokens/topk.ts';
import { type CrossEntropyWire, type PolicyWire, toWire } from '../../../core/tokens/wire.ts';
import { planMinibatches, wireLoss } from '../../../core/training/minibatches.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { DOUBLE, difference, SINGLE, type Tolerance } from '../same.ts';
import { type Candidates, fromRow, type RawCall, type RawRow, toEpisode, toRow, toTopkRow } from './raw-tokens.ts';

type RawDatum = { trial: string; fragment: number; tokens: number[]; mask: number[]; logprobs: number[]; advantages?: number[] };

const compare = (expected: unknown, actual: unknown, tolerance: Tolerance = DOUBLE): Finding => {
  const found = difference(expected, actual, tolerance);
  return found === null ? null : { difference: found };
};
/** The answer in the shape of the vectors; an error of ours becomes its code. */
const answer = <T>(of: () => T): T | { ok: false; error: string } => {
  try {
    return of();
  } catch (error) {
    if (error instanceof TokenError) return { ok: false, error: error.code };
    throw error;
  }
};
const toDatum = (raw: RawDatum): Datum => ({
  trial: raw.trial as TrialId,
  fragment: raw.fragment,
  tokens: Int32Array.from(raw.tokens),
  mask: Uint8Array.from(raw.mask),
  logprobs: Float64Array.from(raw.logprobs),
});
const named = ({ trial, fragment }: Datum) => ({ trial, fragment });

function build(input: { context_budget_tokens: number; max_datum_tokens: number; trials: RawTrial[] }, expected: unknown): Finding {
  const episodes = input.trials.map((raw) => toEpisode(raw.trial, raw.stop_reason, raw.spans));
  const limits = { contextBudgetTokens: input.context_budget_tokens, maxDatumTokens: input.max_datum_tokens };
  const { datums: built, stats } = buildDatums(episodes, limits);
  return compare(expected, {
    datums: built.map((d) => ({ ...named(d), tokens: [...d.tokens], mask: [...d.mask], logprobs: [...d.logprobs] })),
    stats: {
      datums: stats.datums,
      fragments: stats.fragments,
      fragmentation_rate: stats.fragmentationRate,
      overflow_drops: stats.overflowDrops,
      overlong_drops: stats.overlongDrops,
      loss_tokens: stats.lossTokens,
      context_tokens: stats.contextTokens,
    },
  });
}
type RawTrial = { trial: string; stop_reason: string | null; spans: RawCall[] };

function spanValid(input: RawCall, expected: unknown): Finding {
  const span = { sampled: Int32Array.from(input.sampled), logprobs: Float64Array.from(input.logprobs) };
  return compare(expected, { valid: spanProblem(span) === null });
}

type AdvantagesInput = { advantage_clip: number | null; center_advantages: boolean; datums: RawDatum[]; teacher_logprobs: RawRow[] };
function advantages(input: AdvantagesInput, expected: { ok: boolean }): Finding {
  const options = { advantageClip: input.advantage_clip, centerAdvantages: input.center_advantages };
  const ours = answer(() => {
    const result = computeAdvantages(input.datums.map(toDatum), input.teacher_logprobs.map(toRow), options);
    return {
      ok: true,
      datums: result.kept.map((datum, i) => ({ ...named(datum), advantages: [...at(result.advantages, i)] })),
      stats: {
        datums: result.stats.datums,
        mismatch_drops: result.stats.mismatchDrops,
        clipped_tokens: result.stats.clippedTokens,
        loss_tokens: result.stats.lossTokens,
        context_tokens: result.stats.contextTokens,
        advantage_mean: result.stats.advantageMean,
        advantage_std: result.stats.advantageStd,
      },
      reverse_kl_per_token: result.reverseKlNatsPerToken,
    };
  });
  return compare(expected, ours.ok ? ours : { ...ours, reverse_kl_per_token: null });
}

function teacherRow(input: { datum: RawDatum; service_logprobs: RawRow }, expected: unknown): Finding {
  return compare(
    expected,
    answer(() => ({ ok: true, row: fromRow(keepTeacherRow(toDatum(input.datum), input.service_logprobs)) })),
  );
}

const tensor = (dtype: string, data: Int32Array | Float32Array) => ({ data: [...data], dtype, shape: [data.length] });
const sent = (wire: PolicyWire | CrossEntropyWire) => {
  const floats = 'weights' in wire ? { weights: wire.weights } : { logprobs: wire.logprobs, advantages: wire.advantages };
  const lists = Object.entries(floats).map(([key, data]) => [key, tensor('float32', data)]);
  return { model_input: [...wire.modelInput], inputs: { target_tokens: tensor('int64', wire.targetTokens), ...Object.fromEntries(lists) } };
};
function wire(input: { loss: 'importance_sampling' | 'ppo' | 'warmup'; datums: RawDatum[] }, expected: unknown): Finding {
  const own = input.datums.map(toDatum);
  const attached = input.datums.map((raw) => (raw.advantages ? Float64Array.from(raw.advantages) : undefined));
  const ours = answer(() =>
    input.loss === 'warmup'
      ? { ok: true, loss_fn: 'cross_entropy', wire: toWire('cross_entropy', own).map(sent) }
      : { ok: true, loss_fn: input.loss, wire: toWire(input.loss, own, attached).map(sent) },
  );
  return compare(expected, ours, SINGLE);
}

function topk(input: { k: number; datums: RawDatum[]; topk_rows: (Candidates | null)[][] }, expected: unknown): Finding {
  const ours = answer(() => {
    const { replicas, stats } = buildTopkReplicas(input.datums.map(toDatum), input.topk_rows.map(toTopkRow), input.k);
    return {
      ok: true,
      replicas: replicas.map((r) => ({ ...named(r.datum), target_tokens: [...r.targetTokens], target_weights: [...r.targetWeights] })),
      stats: {
        source_datums: stats.sourceDatums,
        datums: stats.datums,
        mismatch_drops: stats.mismatchDrops,
        loss_tokens: stats.lossTokens,
        context_tokens: stats.contextTokens,
      },
      wire: topkToWire(replicas).map((w) => ({
        model_input: [...w.modelInput],
        target_tokens: [...w.targetTokens],
        weights: [...w.weights],
      })),
    };
  });
  return compare(expected, ours, SINGLE);
}

function renormalized(input: { candidates: Candidates }, expected: unknown): Finding {
  return compare(expected, { weights: [...renormalize(input.candidates.map(([, logprob]) => logprob))] });
}

type MinibatchInput = {
  run_name: string;
  step: number;
  num_substeps: number;
  loss: 'importance_sampling' | 'ppo' | 'topk_ce';
  topk: number | null;
  datum_tokens: number[][];
};
/** The order of a shuffle is ours; what is compared is the loss, the number of updates, whole groups, each exactly once. */
function minibatches(
  input: MinibatchInput,
  expected: { wire_loss: string | null; chunks: number[][]; optimizer_updates: number },
): Finding {
  const sources = input.datum_tokens.flatMap((_, source) => Array.from({ length: input.topk ?? 1 }, () => source));
  const plan = { sources, numSubsteps: input.num_substeps, runName: input.run_name, step: input.step };
  const chunks = planMinibatches(plan).map((chunk) => chunk.map((index) => at(sources, index)));
  const reported = { wire_loss: chunks.length === 0 ? null : wireLoss(input.loss), optimizer_updates: chunks.length };
  const wanted = { wire_loss: expected.wire_loss, optimizer_updates: expected.optimizer_updates };
  if (input.num_substeps === 1) return compare({ ...wanted, chunks: expected.chunks }, { ...reported, chunks });
  const sorted = (list: number[][]) => list.flat().sort((a, b) => a - b);
  const split = input.datum_tokens.some((_, source) => chunks.filter((chunk) => chunk.includes(source)).length !== 1);
  return compare(
    { ...wanted, split: false, members: sorted(expected.chunks), repeated: chunks },
    {
      ...reported,
      split,
      members: sorted(chunks),
      repeated: planMinibatches(plan).map((chunk) => chunk.map((index) => at(sources, index))),
    },
  );
}

export const datums: FamilyAdapter = {
  family: 'datums',
  kinds: {
    build,
    span_valid: spanValid,
    advantages,
    teacher_row: teacherRow,
    wire,
    topk,
    renormalize: renormalized,
    minibatches,
  },
};
