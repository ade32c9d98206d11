import type { ForwardBackwardOutput } from '../wire/index.ts';

type Weighted = { readonly value: number; readonly weight: number };
type Reduction = (parts: readonly Weighted[]) => number;

/** By the word after the ":" of a metric's name. `weight` is the number of datums in the chunk. */
const REDUCTIONS: ReadonlyMap<string, Reduction> = new Map<string, Reduction>([
  ['sum', (parts) => parts.reduce((sum, { value }) => sum + value, 0)],
  ['min', (parts) => Math.min(...parts.map(({ value }) => value))],
  ['max', (parts) => Math.max(...parts.map(({ value }) => value))],
  ['mean', weightedMean],
  ['slack', (parts) => Math.max(...parts.map(({ value }) => value)) - weightedMean(parts)],
  ['hash2', (parts) => Number(parts.reduce((sum, { value }) => BigInt.asUintN(64, sum + BigInt(Math.trunc(value))), 0n))],
]);

/**
 * Joins the results of a batch that was sent in chunks, in chunk order; runs for a single chunk too.
 * Datums are concatenated. A metric `name:reduction` that all chunks have is reduced; an unknown reduction is dropped.
 * `unique` keeps every value: the first under its name, the others as `<name>_2`, `<name>_3`, …
 * @throws RangeError when a metric's name has not exactly one ":"
 */
export function combineOutputs(outputs: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const [first] = outputs;
  if (first === undefined) throw new RangeError('no forward_backward result to combine');
  return {
    lossFnOutputType: first.lossFnOutputType,
    lossFnOutputs: outputs.flatMap((output) => output.lossFnOutputs),
    metrics: combineMetrics(outputs),
  };
}

function combineMetrics(outputs: readonly ForwardBackwardOutput[]): Record<string, number> {
  const combined: Record<string, number> = {};
  for (const key of Object.keys(outputs[0]?.metrics ?? {})) {
    const reduction = reductionOf(key);
    const parts = outputs.flatMap(({ metrics, lossFnOutputs }) => {
      const value = metrics[key];
      return value === undefined ? [] : [{ value, weight: lossFnOutputs.length }];
    });
    if (parts.length < outputs.length) continue;
    if (reduction === 'unique') {
      for (const [i, { value }] of parts.entries()) combined[i === 0 ? key : `${key}_${i + 1}`] = value;
    }
    const reduce = REDUCTIONS.get(reduction);
    if (reduce !== undefined) combined[key] = reduce(parts);
  }
  return combined;
}

function reductionOf(key: string): string {
  const [, reduction, ...more] = key.split(':');
  if (reduction === undefined || more.length > 0) {
    throw new RangeError(`the service names a metric "${key}"; a name needs the form "name:reduction" to be joined over chunks`);
  }
  return reduction;
}

/** Falls back to the plain mean when no chunk has a datum. */
function weightedMean(parts: readonly Weighted[]): number {
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return parts.reduce((sum, { value }) => sum + value, 0) / parts.length;
  return parts.reduce((sum, { value, weight }) => sum + value * weight, 0) / total;
}
