import { execa } from 'execa';
import { z } from 'zod';

const Protection = z.object({
  isolation: z.enum(['bubblewrap', 'none']),
  user: z.enum(['own', 'runner', 'root']),
  processLimit: z.enum(['cgroup', 'ulimit', 'none']),
  totalMemory: z.enum(['cgroup', 'sampled', 'none']),
  files: z.enum(['ram', 'disk']),
  userNamespaces: z.enum(['closed', 'open']),
  network: z.enum(['none', 'host']),
});

/** What holds for sandboxes on this machine, as watched; docs/sandbox.md says what each value means. */
export type SandboxProtection = z.infer<typeof Protection>;

const Answer = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), version: z.string(), protection: Protection }),
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
