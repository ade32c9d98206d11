import type { z } from 'zod';
import { ForeignResult } from './errors.ts';

/** Problems of a file that are told: the first ones say enough. */
const PROBLEMS_TOLD = 3;

/** Keys under which a file may say which version wrote it. */
const VERSION_KEYS = ['harbor_version', 'schema_version', 'version'] as const;

/** The error for JSON that is not a trial result of harbor 0.25: what it is instead, as far as it tells, and what to do. */
export function foreignResult(json: unknown, { issues }: Pick<z.ZodError, 'issues'>): ForeignResult {
  const told = issues.slice(0, PROBLEMS_TOLD).map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`);
  const more = issues.length > PROBLEMS_TOLD ? `; and ${issues.length - PROBLEMS_TOLD} more` : '';
  const what = isJobResult(json) ? 'it is the result of a job' : `${versionIn(json)}${told.join('; ')}${more}`;
  return new ForeignResult(
    `result.json is not a harbor 0.25 trial result (${what}). Stillroom reads what harbor 0.25 writes: install that version into its Python (\`npm run setup\`), or see why this file was written instead`,
  );
}

function isJobResult(json: unknown): boolean {
  return typeof json === 'object' && json !== null && 'n_total_trials' in json && 'stats' in json;
}

function versionIn(json: unknown): string {
  if (typeof json !== 'object' || json === null) return '';
  const fields = json as Record<string, unknown>;
  const key = VERSION_KEYS.find((name) => ['string', 'number'].includes(typeof fields[name]));
  return key === undefined ? '' : `it says ${key} ${fields[key]}; `;
}
