import { estimatedBytes, type TrainingDatum } from '../wire/index.ts';

export type ChunkLimits = { readonly maxDatums: number; readonly maxBytes: number };

/**
 * Cuts a batch into chunks in order. A chunk closes before a datum that would pass `maxBytes` (exactly the limit still
 * fits) or when it holds `maxDatums`; a datum larger than the limit goes alone.
 */
export function chunkDatums(datums: readonly TrainingDatum[], limits: ChunkLimits): TrainingDatum[][] {
  const chunks: TrainingDatum[][] = [];
  let open: TrainingDatum[] = [];
  let openBytes = 0;
  for (const datum of datums) {
    const bytes = estimatedBytes(datum);
    if (open.length > 0 && (open.length >= limits.maxDatums || openBytes + bytes > limits.maxBytes)) {
      chunks.push(open);
      open = [];
      openBytes = 0;
    }
    open.push(datum);
    openBytes += bytes;
  }
  if (open.length > 0) chunks.push(open);
  return chunks;
}
