import { z } from 'zod';

/** Ids that must never be mixed up; the brand exists for the compiler only. */
export type Brand<T, Name extends string> = T & { readonly __brand: Name };

/** One attempt at one task, unique over all runs of a project. */
export type TrialId = Brand<string, 'TrialId'>;

/** Content address of a stored blob, with the run that put it: `<run id>/sha256:<64 hex>`. */
export type BlobRef = Brand<string, 'BlobRef'>;
/** The same where it is read from JSON. */
export const BlobRefText = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*\/sha256:[0-9a-f]{64}$/, { error: 'must be a blob reference (<run id>/sha256:<64 hex>)' })
  .transform((text) => text as BlobRef);

/** Weights that can be sampled from: `tinker://<run>/sampler_weights/<name>`. */
export type SamplerPath = Brand<string, 'SamplerPath'>;

/** Training state that can be restored: `tinker://<run>/weights/<name>`. */
export type StatePath = Brand<string, 'StatePath'>;
