import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError } from 'commander';
import { execa, execaSync } from 'execa';
import { pythonOf } from '../support/python-env.ts';
import type { DriveResults } from '../tinker-drive/recorder.ts';
import { API_KEY, MODEL, PEERS, type Peer } from './peers.ts';
import { report } from './report.ts';
import { whileServing } from './server.ts';
import { playTerminus } from './terminus.ts';
import { type Check, reportChecks } from './terminus-checks.ts';

/**
 * `npm run test:peers`: installs open servers of the protocol, drives each with our client and compares with what is known, and has
 * harbor's terminus-2 play with each through our gateway.
 * Exit 0 when everything agrees, 1 when something does not or a peer could not be had, 2 on bad arguments. docs/peers.md.
 */

const state = fileURLToPath(new URL('../../.stillroom/peers/', import.meta.url));
const driver = fileURLToPath(new URL('../tinker-drive/main.ts', import.meta.url));
const leash = fileURLToPath(new URL('../../services/processes/leash.mjs', import.meta.url));
const fixtures = fileURLToPath(new URL('../fixtures/tinker/', import.meta.url));

const PEER_NAMES = PEERS.map(({ name }) => name).join(', ');
/** What else may be left out. */
const TERMINUS = 'terminus-2';
const VERSION_LIMIT_MS = 60_000;

type Flags = { readonly without: readonly string[]; readonly python: Readonly<Record<string, string>> };

function parseFlags(args: readonly string[]): Flags {
  const command = new Command('npm run test:peers --')
    .description('Drives our Tinker client against open servers from the package index, on this machine.')
    .option('--without <peer>', `leave one out: ${PEER_NAMES}, or ${TERMINUS} with all; may be repeated`, collectLeftOut, [])
    .option('--python <peer=path>', 'a Python that already holds the peer; nothing is installed for it', collectPython, {})
    .exitOverride()
    .parse(args, { from: 'user' });
  return command.opts<Flags>();
}

function collectLeftOut(name: string, before: readonly string[]): string[] {
  return [...before, name === TERMINUS ? name : knownPeer(name)];
}

function collectPython(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const [name = '', path = ''] = text.split(/=(.*)/s);
  if (path === '') throw new CommanderError(2, 'peers.python', `--python is peer=path, got "${text}"`);
  const known = knownPeer(name);
  const { failed, stdout, stderr, message } = execaSync(path, ['--version'], { reject: false, timeout: VERSION_LIMIT_MS });
  if (failed || !`${stdout}${stderr}`.startsWith('Python 3.')) {
    const why = failed ? message?.split('\n')[0] : 'its --version does not say "Python 3."';
    throw new CommanderError(2, 'peers.python', `--python ${text}: ${path} is no Python that runs: ${why}`);
  }
  return { ...before, [known]: path };
}

function knownPeer(name: string): string {
  if (PEERS.some((peer) => peer.name === name)) return name;
  throw new CommanderError(2, 'peers.unknown', `no peer "${name}"; the peers are ${PEER_NAMES}`);
}

async function main(args: readonly string[]): Promise<number> {
  let flags: Flags;
  try {
    flags = parseFlags(args);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code.startsWith('peers.')) console.error(error.message);
    return error.exitCode === 0 ? 0 : 2;
  }
  const outcomes: string[] = [];
  let failures = 0;
  for (const peer of PEERS) {
    if (flags.without.includes(peer.name)) {
      outcomes.push(`${peer.title}: left out, as asked`);
      continue;
    }
    const { failed, words } = await tried(peer, flags.python[peer.name], !flags.without.includes(TERMINUS));
    outcomes.push(`${peer.title}: ${words}`);
    failures += failed;
  }
  console.log(`\n${outcomes.join('\n')}`);
  return failures === 0 ? 0 : 1;
}

/** One peer from its installation to its verdict. A peer that cannot be had fails; the others are still tried. */
async function tried(
  peer: Peer,
  python: string | undefined,
  withTerminus: boolean,
): Promise<{ readonly failed: number; readonly words: string }> {
  console.log(`\n${peer.title}`);
  const folder = join(state, peer.name);
  const out = join(folder, 'results.json');
  try {
    const clock = stopwatch();
    const executable = python ?? (await pythonOf(environment(peer)));
    const installed = clock();
    let [started, driven, played] = ['', '', 'left out, as asked'];
    let checks: readonly Check[] = [];
    await whileServing(peer, executable, folder, async (baseUrl) => {
      started = clock();
      const args = [
        '--base-url',
        baseUrl,
        '--model',
        MODEL,
        '--out',
        out,
        '--training-bodies',
        peer.trainingBodies,
        '--patience',
        String(peer.patienceSeconds),
      ];
      // On a leash: it would go on asking a server that ended with us.
      const command = [leash, process.execPath, driver, ...args];
      await execa(process.execPath, command, { env: { TINKER_API_KEY: API_KEY }, stdout: 'inherit', stderr: 'inherit', detached: true });
      driven = clock();
      if (!withTerminus) return;
      checks = await playTerminus(peer, baseUrl);
      played = clock();
    });
    const failed = report(peer, readResults(out), readResults(join(fixtures, peer.recording))) + reportChecks(TERMINUS, checks);
    const verdict = failed === 0 ? 'agrees' : `${failed} disagreements`;
    return { failed, words: `${verdict} (environment ${installed}, start ${started}, drive ${driven}, ${TERMINUS} ${played})` };
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return { failed: 1, words: 'could not be tried, see above; --without leaves it out' };
  }
}

function environment({ name, requirements }: Peer) {
  const file = join(import.meta.dirname, 'requirements', requirements);
  // The file names everything, ready-made packages only: nothing is resolved or compiled.
  const install = ['--no-deps', '--only-binary', ':all:', '--no-compile', '-r', file];
  return { folder: join(state, 'environments', name), install, holds: readFileSync(file, 'utf8') };
}

/** Seconds since the last call, in words. */
function stopwatch(): () => string {
  let last = performance.now();
  return () => {
    const seconds = (performance.now() - last) / 1000;
    last = performance.now();
    return `${seconds.toFixed(0)} s`;
  };
}

const readResults = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as DriveResults;

process.exitCode = await main(process.argv.slice(2));
