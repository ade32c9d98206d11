import { z } from 'zod';
import type { PromptTargets } from '../../engine/types.ts';
import { csrFault, csrRows } from '../csr.ts';
import { HttpFailure } from '../failures.ts';
import type { TableLayout } from '../threads/sampling-backend.ts';
import { count } from './bodies.ts';

/** An int64 tensor as JSON says it. */
export const tensorSchema = z.object({
  data: z.array(z.number().int()),
  dtype: z.literal('int64'),
  shape: z.array(count),
  sparse_crow_indices: z.array(count).nullish(),
  sparse_col_indices: z.array(count).nullish(),
});

/** Token ids to score, [rows, K] or the listed cells of that; -1 asks for nothing. Throws HttpFailure 400 for a tensor of another form. */
export function promptTargets(
  tensor: z.infer<typeof tensorSchema>,
  rows: number,
  vocab: number,
): { readonly cells: PromptTargets; readonly layout: TableLayout } {
  const { data, shape } = tensor;
  const [height, columns] = shape;
  if (shape.length !== 2 || height !== rows || columns === undefined || columns === 0) {
    refuse(`shape is [${shape.join(', ')}]; it must be [${rows}, K], a row for every token of the prompt but the first`);
  }
  const bad = data.findIndex((id) => id < -1 || id >= vocab);
  if (bad >= 0) refuse(`token ${data[bad]} at ${bad} is outside the vocabulary (0 to ${vocab - 1}); -1 asks for nothing`);
  const width = columns ?? 0;
  const [crow, col] = [tensor.sparse_crow_indices ?? null, tensor.sparse_col_indices ?? null];
  if (crow === null || col === null) {
    if (data.length !== rows * width) refuse(`${data.length} values do not fill the shape [${shape.join(', ')}]`);
    const cells = { rows: Int32Array.from(data, (_, i) => Math.floor(i / width)), ids: Int32Array.from(data) };
    return { cells, layout: { rows, columns: width, sparse: null } };
  }
  const fault = csrFault({ crow, col }, rows, width, data.length);
  if (fault !== null) refuse(fault);
  return { cells: { rows: csrRows(crow), ids: Int32Array.from(data) }, layout: { rows, columns: width, sparse: { crow, col } } };
}

function refuse(why: string): never {
  throw new HttpFailure(400, `target_prompt_logprobs: ${why}`);
}
