import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Names more variables that harbor's environments may read, with commas between. */
const MORE = 'STILLROOM_HARBOR_ENV';

/**
 * Beginnings of the variables in which harbor's environments look for their credentials and addresses, one for each environment that has
 * any. Nothing else of the worker's environment reaches harbor: agents that harbor installs would take keys along into sandboxes.
 */
export const PASSED_PREFIXES = [
  ...['ACK', 'APPLE', 'BEAM', 'BL', 'BLAXEL', 'BUILDKIT', 'COMPOSE', 'CONTAINER', 'CUA', 'CWSANDBOX', 'DAYTONA', 'DOCKER', 'E2B', 'EC2'],
  ...['GKE', 'HF', 'HYPERBROWSER', 'ISLO', 'KATA', 'KERNEL', 'LANGSMITH', 'MODAL', 'MOSAIC', 'NOVITA', 'OPENSANDBOX', 'OPENSHIFT'],
  ...[
    'PODMAN',
    'PRIME',
    'RUNLOOP',
    'RUNTA',
    'SAIL',
    'SBX',
    'SINGULARITY',
    'APPTAINER',
    'SKYPILOT',
    'SMOL',
    'TENSORLAKE',
    'USE_COMPUTER',
    'VERCEL',
  ],
];
/** Where tools of this machine find their engines and clusters. */
const PASSED_NAMES = ['KUBECONFIG', 'XDG_RUNTIME_DIR'];

/**
 * The variables of a worker that its harbor gets: what environments need, and what `STILLROOM_HARBOR_ENV` names. harbor has a private HOME,
 * so Docker is told where the worker's own settings and plug-ins are.
 */
export function passedVariables(env: NodeJS.ProcessEnv = process.env, home: string = homedir()): Record<string, string> {
  const named = new Set([...PASSED_NAMES, ...(env[MORE] ?? '').split(',').map((name) => name.trim())]);
  const isPassed = (name: string) => named.has(name) || PASSED_PREFIXES.some((prefix) => name.startsWith(`${prefix}_`));
  const passed = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && isPassed(entry[0]));
  const docker = join(home, '.docker');
  return { ...(existsSync(docker) ? { DOCKER_CONFIG: docker } : {}), ...Object.fromEntries(passed) };
}
