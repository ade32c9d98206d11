import { stringify } from 'smol-toml';

/** Sections of a run config as the vectors give them: only what differs from the defaults. */
export type Sections = { readonly [section: string]: { readonly [key: string]: string | number | boolean } };

/** TOML text of some sections; the three keys every config needs are filled in where a case leaves them out. */
export function toToml(given: Sections): string {
  const needed: Sections = { student: { base_model: 's' }, teacher: { model: 't' }, harbor: { job_template: 'j' } };
  return stringify({ ...needed, ...given });
}
