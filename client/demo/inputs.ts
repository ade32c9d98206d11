import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { CliError } from '../errors.ts';
import { type BuiltStart, buildStartInput } from '../input/start-input.ts';
import { type Override, overrideToml } from './overrides.ts';

export type DemoInputs = {
  readonly stateDir: string;
  readonly sandbox: 'bwrap' | 'plain';
  readonly overrides: readonly Override[];
  /** How many held-out tasks are used, the kinds in turn; null is all. */
  readonly holdout: number | null;
};

const QUICKSTART = join(PROJECT_ROOT, 'examples', 'quickstart');
/** Where the example's job template looks for the tasks. */
const TASKS = join(PROJECT_ROOT, '.stillroom', 'quickstart');
const HOLDOUT = join(TASKS, 'holdout.json');
const PLAIN_TEMPLATE: Override = { key: 'harbor.job_template', value: 'examples/quickstart/job-plain.json' };

/** Makes the quickstart's tasks and builds the demo's input. What differs from the example is written to `<state>/demo/` to be read. */
export async function demoInput({ stateDir, sandbox, overrides, holdout }: DemoInputs): Promise<BuiltStart> {
  await promisify(execFile)(process.execPath, [join(QUICKSTART, 'generate.ts'), TASKS]); // leaves tasks that are there as they are
  const holdoutIds = JSON.parse(readFileSync(HOLDOUT, 'utf8')) as string[];
  if (holdout !== null && holdout > holdoutIds.length)
    throw new CliError(`--holdout ${holdout}: the quickstart has ${holdoutIds.length} held-out tasks`);
  const changes = [...(sandbox === 'plain' ? [PLAIN_TEMPLATE] : []), ...overrides];
  const example = join(QUICKSTART, 'run.toml');
  const derived = (name: string, text: string) => writeDerived(join(stateDir, 'demo'), name, text);
  const config = changes.length === 0 ? example : derived('run.toml', overrideToml(readFileSync(example, 'utf8'), changes));
  const ids = holdoutIds.slice(0, holdout ?? undefined);
  const holdoutPath = holdout === null ? HOLDOUT : derived('holdout.json', `${JSON.stringify(ids, null, 2)}\n`);
  return buildStartInput({ agent: 'turn', config, tasks: join(TASKS, 'train.json'), holdout: holdoutPath, yes: true }, PROJECT_ROOT);
}

function writeDerived(dir: string, name: string, text: string): string {
  mkdirSync(dir, { recursive: true });
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}
