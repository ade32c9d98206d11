import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { execa } from 'execa';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { withLock } from '../../setup/lock.mjs';

/** One bundled file that needs Node alone: of harbor's installed agents with a package here the smallest. */
const VERSION = '0.15.10';
const HOME = join(PROJECT_ROOT, '.stillroom', 'agent-programs');
const LIMIT_MS = 180_000;
/** What it does not need to talk to a model and run commands: search tools for five platforms. */
const LEFT_OUT = 'package/vendor';

export type AgentProgramFolder = {
  /** Host folders that a sandbox must be shown. */
  readonly binds: readonly string[];
  /** The sandbox's PATH. */
  readonly path: string;
};

/** Qwen Code as a sandbox can be shown it, with this very Node. Fetched at the first use, with the user's own settings of npm; no script of it runs. */
export async function qwenCode(): Promise<AgentProgramFolder> {
  const folder = join(HOME, `qwen-code-${VERSION}`);
  const fetchOnce = async () => {
    if (!existsSync(folder)) await fetchInto(folder);
  };
  if (!existsSync(folder)) await withLock(`${folder}.lock`, fetchOnce, 'fetching of Qwen Code');
  const node = realpathSync(process.execPath);
  const bin = join(folder, 'bin');
  return { binds: [realpathSync(folder), dirname(node)], path: `${realpathSync(bin)}:${dirname(node)}:/usr/local/bin:/usr/bin:/bin` };
}

async function fetchInto(folder: string): Promise<void> {
  mkdirSync(HOME, { recursive: true });
  const aside = mkdtempSync(`${folder}.part-`);
  try {
    const env = { npm_config_cache: join(PROJECT_ROOT, '.stillroom', 'cache', 'npm') };
    const pack = ['pack', '--silent', '--pack-destination', aside, `@qwen-code/qwen-code@${VERSION}`];
    const { stdout } = await execa('npm', pack, { env, cwd: aside, timeout: LIMIT_MS });
    const archive = join(aside, basename(stdout.trim().split('\n').at(-1) ?? ''));
    await execa('tar', ['-xzf', archive, `--exclude=${LEFT_OUT}`], { cwd: aside, timeout: LIMIT_MS });
    rmSync(archive);
    mkdirSync(join(aside, 'bin'));
    writeFileSync(join(aside, 'bin/qwen'), '#!/bin/sh\nexec node "$(dirname "$0")/../package/cli.js" "$@"\n');
    chmodSync(join(aside, 'bin/qwen'), 0o755);
    chmodSync(aside, 0o755); // a sandbox may run as another user
    renameSync(aside, folder);
  } catch (error) {
    throw new Error(`Qwen Code ${VERSION} could not be fetched; this test needs it. Check the network, or npm's registry.\n${error}`);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}
