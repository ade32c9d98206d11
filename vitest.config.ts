import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests of the whole system take minutes, unit tests moments: the long ones first, so that none is left to run alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isOfTheWhole = (file: TestSpecification) => /\/test\/(?!vectors\/)/.test(file.moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isOfTheWhole), ...sorted.filter((file) => !isOfTheWhole(file))];
  }
}

export default defineConfig({
  test: {
    include: ['**/*.test.ts', 'setup/*.test.mjs'],
    exclude: ['**/node_modules/**', '.stillroom/**'],
    // One process a file: Temporal's native runtime exists once per process, and its crash must not take other files along.
    pool: 'forks',
    globalSetup: './test/support/global-setup.ts',
    // Most files start real processes: more of them side by side only makes each slower.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
  },
});
