import path from 'node:path';
import { parseArgs } from 'node:util';
import { type AppSettings, BadSettings, publicUrl, readAppSettings } from './app-settings.ts';
import { PROJECT_ROOT } from './environment.ts';
import { ALL_ROLES, ROLE_SYNTAX, type Role, rolesIn } from './worker-roles.ts';

/** What one worker process is to be. */
export type WorkerFlags = {
  readonly roles: readonly Role[];
  readonly settings: AppSettings;
  readonly stateDir: string;
  /** Where its metrics are served; null for nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | null;
};

const FLAGS = {
  role: { type: 'string', default: ALL_ROLES },
  state: { type: 'string', default: path.join(PROJECT_ROOT, '.stillroom') },
  slots: { type: 'string' },
  'metrics-port': { type: 'string' },
  'gateway-url': { type: 'string' },
} as const;

/** Names this worker's own public URL: machines share one settings file. */
export const GATEWAY_URL = 'STILLROOM_GATEWAY_URL';

/** Reads the command line of a worker; what it leaves open the environment says, then the settings. @throws BadSettings */
export function readWorkerFlags(
  args: readonly string[],
  settings: AppSettings = readAppSettings(),
  variables: NodeJS.ProcessEnv = process.env,
): WorkerFlags {
  const {
    role,
    state: stateDir,
    slots,
    'metrics-port': metricsPort,
    'gateway-url': url,
  } = parseArgs({ args: [...args], options: FLAGS }).values;
  const roles = rolesIn(role);
  if (!roles) throw new BadSettings(`--role ${JSON.stringify(role)}: must be ${ROLE_SYNTAX}`);
  const port = metricsPort === undefined ? settings.workers.metricsPort : whole('--metrics-port', metricsPort);
  return {
    roles,
    settings: withGatewayUrl(slots === undefined ? settings : withSlots(settings, roles, whole('--slots', slots)), url, variables),
    stateDir,
    metrics: port === undefined ? null : { host: settings.workers.metricsHost, port },
  };
}

const SLOTS_OF = { control: 'controlSlots', rollouts: 'rolloutSlots', training: 'trainingSlots' } as const;

function withSlots(settings: AppSettings, roles: readonly Role[], slots: number): AppSettings {
  const [role, ...others] = roles;
  if (!role || others.length > 0)
    throw new BadSettings('--slots needs a worker of one role; for others set workers.…Slots in the settings');
  return { ...settings, workers: { ...settings.workers, [SLOTS_OF[role]]: slots } };
}

function withGatewayUrl(settings: AppSettings, flag: string | undefined, variables: NodeJS.ProcessEnv): AppSettings {
  const [name, given] = flag === undefined ? [GATEWAY_URL, variables[GATEWAY_URL]] : ['--gateway-url', flag];
  if (given === undefined || given === '') return settings;
  const parsed = publicUrl.safeParse(given);
  // A URL with a password in it is not said again.
  if (!parsed.success) throw new BadSettings(`${name}: ${parsed.error.issues.map(({ message }) => message).join('; ')}`);
  return { ...settings, gateway: { ...settings.gateway, publicUrl: parsed.data } };
}

function whole(flag: string, text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1) throw new BadSettings(`${flag} ${JSON.stringify(text)}: must be a whole number, 1 or more`);
  return value;
}
