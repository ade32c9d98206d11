import { z } from 'zod';

const Ids = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);

/**
 * What a run starts from, the same through every door. `config` is a TOML path or the TOML text; `taskIds` and `holdoutTaskIds`
 * are a path to a JSON array of strings, or the array. Unknown keys are refused, so that a misspelt `promote` is not a silent no.
 */
export const StartInput = z.strictObject({
  agent: z.string().min(1),
  config: z.string().min(1),
  taskIds: Ids,
  holdoutTaskIds: Ids,
  backend: z.enum(['local', 'e2b']).optional(),
  promote: z.boolean().optional(),
  yes: z.boolean().optional(),
  runDir: z.string().min(1).optional(),
  from: z.string().min(1).optional(),
});
export type StartInput = z.infer<typeof StartInput>;
