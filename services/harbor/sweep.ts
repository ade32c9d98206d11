import { execa } from 'execa';
import { type RunnerProcessOptions, runnerEnv } from './runner-process.ts';

/**
 * Ends runners of this machine whose worker is dead, and removes the sandboxes that dead ones left, by the exact ids that each runner wrote
 * down. Never throws: the next runner that starts does it again.
 */
export async function sweepSandboxes(options: RunnerProcessOptions): Promise<void> {
  const { python, onLog } = options;
  const swept = await execa(python, ['-m', 'stillroom_harbor.sweep'], {
    reject: false,
    stdin: 'ignore',
    timeout: 60_000,
    extendEnv: false,
    env: runnerEnv(options),
  });
  if (swept.failed) onLog?.(`sandboxes of dead runners could not be swept: ${swept.shortMessage}`);
}
