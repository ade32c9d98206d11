import { join } from 'node:path';
import {
  type HarborReport,
  harborPython,
  type JobTemplate,
  probeHarbor,
  type RunnerProcessOptions,
  sandboxMode,
} from '../../services/harbor/index.ts';
import { type AppSettings, PROJECT_ROOT, runnerVariables } from '../../services/settings/index.ts';
import { environmentFindings, harborFinding, sandboxFinding } from './environments.ts';
import { type Finding, firstLine, missing, type Seen } from './finding.ts';
import { gatewayFinding, memoryFinding, spaceFinding, storeFinding, toolFindings } from './machine.ts';
import { temporalFinding, trainingFinding } from './services.ts';

const PLUGIN_DIR = join(PROJECT_ROOT, 'harbor_plugin');

/** What works on this machine. With a job template only what trials of it need, all of which then is needed. */
export async function examine(settings: AppSettings, template: JobTemplate | null, sandbox: 'bwrap' | 'plain'): Promise<Finding[]> {
  const part = (name: Finding['part'], needed: boolean) => (seen: Seen) => ({ ...seen, part: name, needed });
  const [trials, machine, services] = await Promise.all([
    ofTrials(settings, template, sandbox),
    Promise.all(template === null ? [...toolFindings(), spaceFinding(), memoryFinding(settings)] : [...toolFindings(), spaceFinding()]),
    template === null ? Promise.all([temporalFinding(settings), trainingFinding()]) : [],
  ]);
  const store = template === null ? [await storeFinding(settings), gatewayFinding(settings)] : [];
  return [
    ...trials.needed.map(part('here', true)),
    ...machine.map(part('here', false)),
    ...store.map(part('here', true)),
    ...services.map(part('services', true)),
    ...trials.others.map(part('environments', false)),
  ];
}

/** What runs trials: Python with harbor, the process sandbox, and harbor's other environments. */
async function ofTrials(
  { harbor: { passEnv } }: AppSettings,
  template: JobTemplate | null,
  sandbox: 'bwrap' | 'plain',
): Promise<{ needed: Seen[]; others: Seen[] }> {
  const wanted = template === null ? sandbox : sandboxMode(template);
  const named = template === null || wanted !== null ? null : (template.environment.type ?? template.environment.import_path ?? null);
  let python: string;
  let report: HarborReport;
  try {
    python = await harborPython(PROJECT_ROOT);
    const home = join(PROJECT_ROOT, '.stillroom/doctor-home');
    const options: RunnerProcessOptions = { python, pluginDir: PLUGIN_DIR, home, env: runnerVariables(passEnv, process.env).env };
    report = await probeHarbor(options, template === null ? {} : { only: named === null ? [] : [named] });
  } catch (error) {
    return { needed: [missing('harbor', firstLine(error), '`npm run setup` installs Python and harbor')], others: [] };
  }
  const modes = template === null ? (['bwrap', 'plain'] as const) : wanted === null ? [] : [wanted];
  const [sandboxes, environments] = await Promise.all([
    Promise.all(modes.map(async (mode) => ({ mode, seen: await sandboxFinding(mode, python, PLUGIN_DIR) }))),
    environmentFindings(report, template === null ? report.names : named === null ? [] : [named]),
  ]);
  const isNeeded = ({ mode }: { mode: string }) => mode === wanted;
  return {
    needed: [harborFinding(report), ...sandboxes.filter(isNeeded).map(({ seen }) => seen), ...(template === null ? [] : environments)],
    others: [...sandboxes.filter((one) => !isNeeded(one)).map(({ seen }) => seen), ...(template === null ? environments : [])],
  };
}
