import { computeAdvantages } from '../../core/tokens/advantages.ts';
import { buildDatums } from '../../core/tokens/datums.ts';
import { decodeEpisode, encodeEpisode } from '../../core/tokens/episode-codec.ts';
import { decodeScoredEpisode, encodeScoredEpisode } from '../../core/tokens/scored-codec.ts';
import type { Episode } from '../../core/tokens/span.ts';
import { keepTeacherRow } from '../../core/tokens/teacher-row.ts';
import { type PolicyWire, toWire } from '../../core/tokens/wire.ts';
import { chunkDatums } from '../../services/tinker/training/chunks.ts';
import { trainingDatum } from '../../services/tinker/training/training-datum.ts';
import { encodeForwardBackwardRequest } from '../../services/tinker/wire/index.ts';
import { conversation, teacherAnswer } from './conversations.ts';

/** From calls to the lists that the training service takes; the stages in front of the goal's line. */
export const TO_WIRE = ['buildDatums', 'keepTeacherRow', 'computeAdvantages', 'toWire'] as const;
/** What is done besides: to store what was sampled and scored, to read it again, and to send it. */
export const BESIDES = [
  'encodeEpisode',
  'decodeEpisode',
  'buildDatums, prompts not shared',
  'encodeScoredEpisode',
  'decodeScoredEpisode',
  'encodeForwardBackwardRequest',
] as const;
export type Stage = (typeof TO_WIRE)[number] | (typeof BESIDES)[number];

/** CPU seconds of each stage over one batch. */
export type StageSeconds = Record<Stage, number>;

const limits = { contextBudgetTokens: 65_536, maxDatumTokens: 65_536 };
const options = { advantageClip: 2, centerAdvantages: true };

/** Takes one batch through the stages in the order of the product; what a stage does not need is made outside of its time. */
export function runBatch(episodes: number): { seconds: StageSeconds; datumTokens: number } {
  const seconds = Object.fromEntries([...TO_WIRE, ...BESIDES].map((stage) => [stage, 0])) as StageSeconds;
  const timed = <T>(stage: Stage, work: () => T): T => {
    const start = process.cpuUsage();
    const result = work();
    const { user, system } = process.cpuUsage(start);
    seconds[stage] += (user + system) / 1e6;
    return result;
  };

  const stored = Array.from({ length: episodes }, (_, seed) => {
    const recorded = conversation(seed);
    timed('buildDatums, prompts not shared', () => buildDatums([recorded], limits));
    return timed('encodeEpisode', () => encodeEpisode(recorded));
  });
  collectGarbage(); // the recorded conversations are made by the bench, not by what follows
  const read: Episode[] = timed('decodeEpisode', () => stored.map(decodeEpisode));
  const { datums } = timed('buildDatums', () => buildDatums(read, limits));
  const answers = datums.map(({ tokens }, i) => teacherAnswer(tokens.length, i));
  const rows = timed('keepTeacherRow', () => datums.map((datum, i) => keepTeacherRow(datum, answers[i] ?? [])));
  const { kept, advantages } = timed('computeAdvantages', () => computeAdvantages(datums, rows, options));
  const wire = timed('toWire', () => toWire('importance_sampling', kept, advantages));

  const scored = timed('encodeScoredEpisode', () =>
    datums.map((datum, i) => encodeScoredEpisode({ trial: datum.trial, datums: [datum], rows: rows.slice(i, i + 1) })),
  );
  timed('decodeScoredEpisode', () => scored.map(decodeScoredEpisode));
  timed('encodeForwardBackwardRequest', () => encodeRequests(wire));
  return { seconds, datumTokens: datums.reduce((sum, { tokens }) => sum + tokens.length, 0) };
}

/** A no-op without `--expose-gc`. */
export function collectGarbage(): void {
  globalThis.gc?.();
}

/** As the client sends them: cut by the protocol's limits, one request a chunk; returns the bytes of all. */
function encodeRequests(wire: readonly PolicyWire[]): number {
  const order = { modelId: 'model', lossFn: 'importance_sampling', lossFnConfig: {}, forwardOnly: false };
  const chunks = chunkDatums(wire.map(trainingDatum), { maxDatums: 1024, maxBytes: 5_000_000 });
  return chunks.reduce((sum, datums, seqId) => sum + encodeForwardBackwardRequest({ ...order, seqId, datums }).length, 0);
}
