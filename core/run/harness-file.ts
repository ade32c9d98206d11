import type { z } from 'zod';
import { HarnessDocument, RUNTIMES } from './harness-document.ts';

/** A description of an agent, or all that is wrong with it, each by its field. */
export type ReadHarness = { readonly document: HarnessDocument } | { readonly problems: readonly string[] };

/** Checks what a file holds. */
export function readHarness(value: unknown): ReadHarness {
  const read = HarnessDocument.safeParse(value);
  return read.success ? { document: read.data } : { problems: read.error.issues.flatMap(told) };
}

function told(issue: z.core.$ZodIssue): string[] {
  const field = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${[...issue.path, key].join('.')}: is not a known field`);
  if (field === 'runtime') return [`runtime: must be one of ${RUNTIMES.join(', ')}`];
  if (field === '') return ['(whole file): must be an object with the field runtime'];
  if (issue.code === 'invalid_type' && issue.input === undefined) return [`${field}: is missing`];
  return [`${field}: ${issue.message}`];
}
