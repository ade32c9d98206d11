import { execa } from 'execa';
import { z } from 'zod';

const Answer = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), version: z.string() }),
  z.object({ ok: z.literal(false), reason: z.string() }),
]);

/** Whether process sandboxes work on this machine: what runs them, or the exact reason why not. */
export type SandboxCheck = z.infer<typeof Answer>;

export type SandboxCheckOptions = {
  readonly python: string;
  readonly pluginDir: string;
  readonly mode: 'bwrap' | 'plain';
  readonly sandboxRoot?: string;
};

/** Starts one sandbox, runs a command in it and removes it. Never throws for a sandbox that does not work. */
export async function checkSandbox({ python, pluginDir, mode, sandboxRoot }: SandboxCheckOptions): Promise<SandboxCheck> {
  const result = await execa(python, ['-m', 'stillroom_harbor.sandbox_check', mode], {
    reject: false,
    stdin: 'ignore',
    timeout: 120_000,
    env: { PYTHONPATH: pluginDir, HARBOR_TELEMETRY: '0', ...(sandboxRoot === undefined ? {} : { STILLROOM_SANDBOX_ROOT: sandboxRoot }) },
  });
  try {
    return Answer.parse(JSON.parse(result.stdout ?? ''));
  } catch {
    const said = `${result.stderr ?? ''}`.trim().split('\n').slice(-5).join('\n');
    return { ok: false, reason: `${python} could not run the sandbox check: ${said || result.shortMessage}` };
  }
}
