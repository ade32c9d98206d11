import { copyFileSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { workflowBundle as bundleIn } from '../../services/temporal/workflow-bundle.ts';

const SHARED = join(PROJECT_ROOT, '.stillroom', 'cache');

/** The bundle of workflow code, made once for all test files: making it takes longer than most tests that need it. */
export const workflowBundle = (): Promise<{ codePath: string }> => bundleIn(PROJECT_ROOT, SHARED);

/** Puts it where a worker with this state folder looks for it. */
export async function shareBundle(stateDir: string): Promise<void> {
  const { codePath } = await workflowBundle();
  const cacheDir = join(stateDir, 'cache');
  mkdirSync(cacheDir, { recursive: true });
  copyFileSync(codePath, join(cacheDir, basename(codePath)));
}
