export { type AppSettings, BadSettings, readAppSettings, SETTINGS_FILE } from './app-settings.ts';
export type { StoreLocation } from './blob-store.ts';
export { type Environment, EnvironmentMissing, PROJECT_ROOT, readEnvironment } from './environment.ts';
export { cannotListen } from './gateway-listens.ts';
export { KNOWN_VARIABLES, type RunnerVariables, runnerVariables } from './runner-variables.ts';
export type { TokenizerSource } from './tokenizers.ts';
export { GATEWAY_URL, readWorkerFlags } from './worker-flags.ts';
export { ALL_ROLES, ROLE_SYNTAX, ROLES, type Role, rolesIn } from './worker-roles.ts';
