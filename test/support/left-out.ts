import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { CGROUPS_ARE_HERE } from './control-groups.ts';

/** What this machine lacks, and the word by which a test file says that it leaves tests out for want of it. */
type Lack = { readonly word: string; readonly lacks: string; readonly remedy: string };

/** Files that hold the words for other reasons. */
const NO_TESTS = /support\/|terminus-setting\.ts$/;

/** What a test run on this machine leaves out, for a person to read; empty where nothing is. */
export function leftOut(lacks: readonly Lack[] = lacksHere()): string[] {
  return lacks.flatMap(({ word, lacks, remedy }) => {
    const files = globSync('test/**/*.test.ts', { cwd: PROJECT_ROOT }).filter(
      (file) => !NO_TESTS.test(file) && readFileSync(join(PROJECT_ROOT, file), 'utf8').includes(word),
    );
    return [`LEFT OUT on this machine, for want of ${lacks}: tests in ${files.toSorted().join(', ')}. ${remedy}`];
  });
}

function lacksHere(): Lack[] {
  const plain = { word: "SANDBOX_MODE === 'bwrap'", lacks: 'isolation (plain mode)', remedy: 'Run them where bubblewrap works.' };
  const tmux = { word: 'TMUX_IS_HERE', lacks: 'tmux', remedy: 'Install the package tmux.' };
  const groups = { word: 'CGROUPS_ARE_HERE', lacks: 'control groups of our own', remedy: 'Run them as root, or in a delegated cgroup.' };
  const isPlain = process.env.STILLROOM_SANDBOX === 'plain';
  return [...(isPlain ? [plain] : []), ...(runs('tmux', '-V') ? [] : [tmux]), ...(CGROUPS_ARE_HERE ? [] : [groups])];
}

function runs(command: string, argument: string): boolean {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
