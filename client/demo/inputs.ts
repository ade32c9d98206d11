import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_DIR, generateQuickstart } from '../../examples/quickstart/generate.ts';
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
const PLAIN_TEMPLATE: Override = { key: 'harbor.job_template', value: 'examples/quickstart/job-plain.json' };

/** Makes the quickstart's tasks and builds the demo's input. What differs from the example is written to `<state>/demo/` to be read. */
export async function demoInput({ stateDir, sandbox, overrides, holdout }: DemoInputs): Promise<BuiltStart> {
  const quickstart = generateQuickstart(join(PROJECT_ROOT, DEFAULT_DIR));
  if (holdout !== null && holdout > quickstart.holdoutIds.length)
    throw new CliError(`--holdout ${holdout}: the quickstart has ${quickstart.holdoutIds.length} held-out tasks`);
  const changes = [...(sandbox === 'plain' ? [PLAIN_TEMPLATE] : []), ...overrides];
  const example = join(QUICKSTART, 'run.toml');
  const derived = (name: string, text: string) => writeDerived(join(stateDir, 'demo'), name, text);
  const config = changes.length === 0 ? example : derived('run.toml', overrideToml(readFileSync(example, 'utf8'), changes));
  const ids = quickstart.holdoutIds.slice(0, holdout ?? undefined);
  const holdoutPath = holdout === null ? quickstart.holdoutPath : derived('holdout.json', `${JSON.stringify(ids, null, 2)}\n`);
  return buildStartInput({ agent: 'turn', config, tasks: quickstart.trainPath, holdout: holdoutPath, yes: true }, PROJECT_ROOT);
}

function writeDerived(dir: string, name: string, text: string): string {
  mkdirSync(dir, { recursive: true });
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}
