import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { chunkDatums } from './chunks.ts';
import { combineOutputs } from './combine.ts';
import type { TrainingDatum } from './wire/index.ts';

type Case = {
  case: string;
  client_config: { fwdbwd_max_chunk_len?: number; fwdbwd_max_chunk_bytes_count?: number };
  datum_lengths: number[];
  arrival_order: { seq_id?: number; datums?: number }[];
  combined: { metrics: Record<string, number>; n_outputs: number };
};

const cases = readFileSync(new URL('../../test/fixtures/tinker/fwdbwd_chunking.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);

function datum(length: number): TrainingDatum {
  const tokens = new Int32Array(length);
  return { modelInput: tokens, lossFnInputs: { target_tokens: tokens, weights: new Float32Array(length) } };
}

describe('chunking', () => {
  test.each(cases)('$case', ({ client_config: config, datum_lengths, arrival_order, combined }) => {
    const chunks = chunkDatums(datum_lengths.map(datum), {
      maxDatums: config.fwdbwd_max_chunk_len ?? 1024,
      maxBytes: config.fwdbwd_max_chunk_bytes_count ?? 5_000_000,
    });
    const recorded = arrival_order.filter((arrival) => arrival.datums !== undefined).sort((a, b) => (a.seq_id ?? 0) - (b.seq_id ?? 0));
    expect(chunks.map((chunk) => chunk.length)).toEqual(recorded.map(({ datums }) => datums));

    const outputs = chunks.map((chunk, i) => ({
      lossFnOutputType: 'TorchLossReturn',
      lossFnOutputs: chunk.map(() => ({})),
      metrics: { 'loss:sum': i + 1, 'tokens:mean': chunk.length, 'peak:max': i + 1 },
    }));
    const joined = combineOutputs(outputs);
    expect(joined.metrics).toEqual(combined.metrics);
    expect(joined.lossFnOutputs).toHaveLength(combined.n_outputs);
  });

  test('an empty batch has no chunks', () => {
    expect(chunkDatums([], { maxDatums: 1, maxBytes: 1 })).toEqual([]);
  });
});

describe('joining metrics', () => {
  const output = (metrics: Record<string, number>, datums: number) => ({
    lossFnOutputType: 't',
    lossFnOutputs: Array.from({ length: datums }, () => ({})),
    metrics,
  });

  test('every reduction', () => {
    const joined = combineOutputs([
      output({ 'a:min': 2, 'b:slack': 1, 'c:hash2': 7, 'd:unique': 3, 'e:odd': 1, 'f:sum': 1 }, 1),
      output({ 'a:min': -1, 'b:slack': 4, 'c:hash2': 2 ** 63, 'd:unique': 5, 'e:odd': 1 }, 3),
    ]);
    expect(joined.metrics).toEqual({ 'a:min': -1, 'b:slack': 0.75, 'c:hash2': Number(2n ** 63n + 7n), 'd:unique': 3, 'd:unique_2': 5 });
  });

  test('a name without a reduction is refused by name', () => {
    expect(() => combineOutputs([output({ loss: 1 }, 1)])).toThrow(/"loss"/);
  });
});
