import { PROCESS_ENVIRONMENT } from './job-environment.ts';
import type { JobTemplate } from './job-template.ts';

type Sandboxed = Pick<JobTemplate, 'environment'>;

/** The mode of the template's process sandbox; null if it uses another kind of environment (Docker, E2B). */
export function sandboxMode({ environment }: Sandboxed): 'bwrap' | 'plain' | null {
  if (environment.import_path !== PROCESS_ENVIRONMENT) return null;
  return environment.kwargs?.mode === 'plain' ? 'plain' : 'bwrap';
}

/** Whether agents' programs run in process sandboxes that have no network. */
export function hasNoNetwork(template: Sandboxed): boolean {
  return sandboxMode(template) === 'bwrap' && template.environment.kwargs?.network !== true;
}
