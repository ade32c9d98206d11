import { mkdir } from 'node:fs/promises';
import { execa } from 'execa';
import { z } from 'zod';
import { BadHarborInput } from './errors.ts';
import { type RunnerProcessOptions, runnerEnv } from './runner-process.ts';

/** More than harbor's import takes on a busy machine; the probe itself answers within seconds. */
const LIMIT_MS = 25_000;

const Line = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('harbor'),
    version: z.string(),
    python: z.string(),
    names: z.array(z.string()),
    keys: z.object({ environment: z.array(z.string()), verifier: z.array(z.string()) }),
  }),
  z.object({
    type: z.literal('environment'),
    name: z.string(),
    /** False: harbor has no check for it. */
    checked: z.boolean(),
    /** What harbor's check found missing, in its words. */
    reason: z.string().nullable(),
    /** harbor's extra that installs what the environment needs. */
    extra: z.string().nullable(),
    missing: z.array(z.string()),
  }),
]);
type Line = z.infer<typeof Line>;

/** What harbor's own check says of one of its environments on this machine. */
export type EnvironmentReport = Omit<Extract<Line, { type: 'environment' }>, 'type'>;

export type HarborReport = Omit<Extract<Line, { type: 'harbor' }>, 'type'> & {
  /** Of those that answered in time. */
  readonly environments: readonly EnvironmentReport[];
};

/**
 * Asks the installed harbor which environments it has, what each lacks here, and what a job file may say. `only`: just these, by type or
 * import path. A check that hangs is left out. @throws BadHarborInput when there is no harbor to ask.
 */
export async function probeHarbor(
  options: RunnerProcessOptions,
  { only, limitMs = LIMIT_MS }: { readonly only?: readonly string[]; readonly limitMs?: number } = {},
): Promise<HarborReport> {
  await mkdir(options.home, { recursive: true });
  const asked = only === undefined ? [] : ['--only', ...only];
  const probe = await execa(options.python, ['-m', 'stillroom_harbor.environments', ...asked], {
    reject: false,
    stdin: 'ignore',
    timeout: limitMs,
    forceKillAfterDelay: 1_000,
    extendEnv: false,
    env: runnerEnv(options),
  });
  const lines = (probe.stdout ?? '').split('\n').flatMap(parseLine);
  const harbor = lines.find((line) => line.type === 'harbor');
  if (harbor?.type !== 'harbor') {
    const said = `${probe.stderr ?? ''}`.trim().split('\n').at(-1);
    throw new BadHarborInput(`${options.python} cannot run harbor: ${said || probe.shortMessage}`);
  }
  return { ...harbor, environments: lines.filter((line) => line.type === 'environment') };
}

function parseLine(text: string): Line[] {
  try {
    return [Line.parse(JSON.parse(text))];
  } catch {
    return [];
  }
}
