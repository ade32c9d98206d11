import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['**/*.test.ts', 'setup/*.test.mjs'],
    exclude: ['**/node_modules/**', '.stillroom/**'],
    // One process a file: Temporal's native runtime exists once per process, and its crash must not take other files along.
    pool: 'forks',
    globalSetup: './test/support/global-setup.ts',
    // Most files start real processes: more of them side by side only makes each slower.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
  },
});
