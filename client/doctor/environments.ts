import {
  checkSandbox,
  composeProblem,
  containerEngine,
  type EngineReport,
  type EnvironmentReport,
  type HarborReport,
  hasSingularity,
  type SandboxProtection,
} from '../../services/harbor/index.ts';
import { look, missing, type Seen, unknown, warning, works } from './finding.ts';

/** The version whose behaviour Stillroom is measured against. */
const HARBOR_VERSION = '0.25.0';
/** A sandbox starts within moments; a busy machine may need long to start Python. */
const SANDBOX_MS = 20_000;

export function harborFinding({ version, python }: HarborReport): Seen {
  const told = `harbor ${version}, Python ${python}`;
  if (version === HARBOR_VERSION) return works('harbor', told);
  return warning('harbor', `${told}; Stillroom is tested with harbor ${HARBOR_VERSION}`, 'npm run setup installs it');
}

export function sandboxFinding(mode: 'bwrap' | 'plain', python: string, pluginDir: string): Promise<Seen> {
  const name = mode === 'bwrap' ? 'process (bwrap)' : 'process (plain)';
  return look(name, SANDBOX_MS, async () => {
    const found = await checkSandbox({ python, pluginDir, mode });
    if (!found.ok) return missing(name, found.reason.split('\n')[0] ?? '', mode === 'bwrap' ? NO_BWRAP : 'see the message');
    if (mode === 'plain') return warning(name, 'starts; nothing isolates what a model writes: it runs as you', 'use it in a throw-away VM');
    return works(name, [found.version, ...protections(found.protection)].join('; '));
  });
}

const NO_BWRAP = 'install bubblewrap and allow user namespaces, or choose another environment; docs/environments.md';

/** What holds in the sandbox, as its own check saw it. */
function protections(seen: SandboxProtection): string[] {
  return Object.entries(seen).map(([name, value]) => `${WORDS[name] ?? name}: ${SAID[value] ?? value}`);
}

const WORDS: Readonly<Record<string, string>> = {
  user: 'runs as',
  processLimit: 'limit of processes',
  totalMemory: 'total memory',
  userNamespaces: 'user namespaces',
};
const SAID: Readonly<Record<string, string>> = {
  ulimit: 'holds (ulimit)',
  sampled: 'sampled, and a kill',
  cgroup: 'bounded by a cgroup',
  own: 'a user of its own',
};

const ENGINES = ['docker', 'podman'] as const;

/** One finding for each environment that harbor was asked about. */
export async function environmentFindings(report: HarborReport, names: readonly string[]): Promise<Seen[]> {
  const engines = ENGINES.filter((kind) => names.includes(kind));
  const isSingularityHere = names.includes('singularity') && (await hasSingularity());
  const found = new Map(await Promise.all(engines.map(async (kind) => [kind as string, await containerEngine(kind)] as const)));
  return names.map((name) => {
    const asked = report.environments.find((environment) => environment.name === name);
    if (!asked) return missing(name, "harbor's own check gave no answer in time", 'look at what keeps it, and run this again');
    if (name === 'singularity' && !isSingularityHere)
      return missing(name, 'no singularity on the PATH', 'install SingularityCE or Apptainer');
    const engine = found.get(name);
    return engine ? engineFinding(name as 'docker' | 'podman', asked, engine) : environmentFinding(asked);
  });
}

export function engineFinding(kind: 'docker' | 'podman', { reason }: EnvironmentReport, engine: EngineReport): Seen {
  const compose = composeProblem(kind, engine);
  if (engine.client === null) return missing(kind, `no ${kind} on the PATH`, `install ${kind} with Compose`);
  const client = `client ${engine.client}`;
  if (engine.engine === null && kind === 'docker')
    return missing(kind, `${client}, but no engine answers`, 'start the engine, or name one with DOCKER_HOST');
  if (compose !== null) return missing(kind, `${client}, engine ${engine.engine ?? 'not seen'}`, compose);
  if (reason !== null) return missing(kind, `${client}, engine ${engine.engine ?? 'not seen'}`, reason);
  return works(kind, `${client}, engine ${engine.engine ?? 'per command'}, Compose ${engine.compose}`);
}

export function environmentFinding({ name, checked, reason, extra, missing: packages }: EnvironmentReport): Seen {
  if (packages.length > 0 && extra !== null) {
    const credentials = reason === null || /pip install/.test(reason) ? '' : `; ${reason}`;
    return missing(name, `not installed: ${packages.join(', ')}`, `pip install 'harbor[${extra}]' into harbor's Python${credentials}`);
  }
  if (reason !== null) return missing(name, 'not usable here', reason);
  return checked
    ? works(name, "harbor's own check passes")
    : unknown(name, 'harbor has no check for it', 'the dry-run trial of a run will tell');
}
