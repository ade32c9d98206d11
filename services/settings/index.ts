export { type AppSettings, BadSettings, readAppSettings, SETTINGS_FILE } from './app-settings.ts';
export type { StoreLocation } from './blob-store.ts';
export { type Environment, EnvironmentMissing, PROJECT_ROOT, readEnvironment } from './environment.ts';
