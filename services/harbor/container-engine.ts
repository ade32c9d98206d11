import { execa } from 'execa';

export type EngineReport = {
  /** The version of its client; null when there is none. */
  readonly client: string | null;
  /** The version of the engine that answered; null when none did in time. */
  readonly engine: string | null;
  /** The version of the Compose that harbor would use; null when there is none. */
  readonly compose: string | null;
};

/** harbor passes podman-compose an option that earlier ones refuse. */
const OLDEST_PODMAN_COMPOSE = [1, 1];

/** What of a container engine is here. Whatever hangs counts as absent after `limitMs`. */
export async function containerEngine(kind: 'docker' | 'podman', limitMs = 5_000): Promise<EngineReport> {
  const ask = async (command: string, ...args: string[]) => {
    const { exitCode, stdout } = await execa(command, args, { reject: false, stdin: 'ignore', timeout: limitMs, forceKillAfterDelay: 500 });
    const [version] = exitCode === 0 ? (/\d+(\.\d+)+/.exec(stdout) ?? []) : [];
    return version ?? null;
  };
  const info = kind === 'docker' ? '{{.ServerVersion}}' : '{{.Version.Version}}';
  const [client, engine, plugin, alone] = await Promise.all([
    ask(kind, '--version'),
    ask(kind, 'info', '--format', info),
    ask(kind, 'compose', 'version'),
    kind === 'podman' ? ask('podman-compose', '--version') : null,
  ]);
  return { client, engine, compose: plugin ?? alone };
}

/** Why harbor could not use this Compose; null if it can. */
export function composeProblem(kind: 'docker' | 'podman', { compose }: EngineReport): string | null {
  if (compose === null) {
    return kind === 'docker' ? 'no Compose: install the plugin docker-compose-plugin' : 'no Compose: install podman-compose 1.1 or later';
  }
  if (kind === 'docker') return null;
  const [major = 0, minor = 0] = compose.split('.').map(Number);
  const [oldest = 0, oldestMinor = 0] = OLDEST_PODMAN_COMPOSE;
  const isOld = major < oldest || (major === oldest && minor < oldestMinor);
  return isOld ? `podman-compose ${compose} is too old for harbor: pip install 'podman-compose>=1.1'` : null;
}

/** Whether the program is here that harbor calls for Singularity and Apptainer alike. */
export async function hasSingularity(limitMs = 5_000): Promise<boolean> {
  return (await execa('singularity', ['--version'], { reject: false, stdin: 'ignore', timeout: limitMs })).exitCode === 0;
}
