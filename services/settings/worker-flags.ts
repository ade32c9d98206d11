import path from 'node:path';
import { parseArgs } from 'node:util';
import { type AppSettings, BadSettings, readAppSettings } from './app-settings.ts';
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
} as const;

/** Reads the command line of a worker; what it leaves open the settings say. @throws BadSettings */
export function readWorkerFlags(args: readonly string[], settings: AppSettings = readAppSettings()): WorkerFlags {
  const { role, state: stateDir, slots, 'metrics-port': metricsPort } = parseArgs({ args: [...args], options: FLAGS }).values;
  const roles = rolesIn(role);
  if (!roles) throw new BadSettings(`--role ${JSON.stringify(role)}: must be ${ROLE_SYNTAX}`);
  const port = metricsPort === undefined ? settings.workers.metricsPort : whole('--metrics-port', metricsPort);
  return {
    roles,
    settings: slots === undefined ? settings : withSlots(settings, roles, whole('--slots', slots)),
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

function whole(flag: string, text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1) throw new BadSettings(`${flag} ${JSON.stringify(text)}: must be a whole number, 1 or more`);
  return value;
}
