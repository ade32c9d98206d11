import type { RunConfig } from './schema.ts';

/** The config with the sandboxes' backend that a run was started with; its own where none was named. */
export function withBackend(config: RunConfig, backend: RunConfig['harbor']['backend'] | undefined): RunConfig {
  return backend === undefined ? config : { ...config, harbor: { ...config.harbor, backend } };
}
