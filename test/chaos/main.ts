import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { wholeNumber } from '../../client/input/number.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import { forgetRun } from '../support/product.ts';
import { type ChaosRun, chaosRun } from './chaos-run.ts';
import { checksOf } from './checks.ts';
import { report } from './report.ts';
import { scheduleOf } from './schedule.ts';

/**
 * `npm run chaos`: kills parts of a running Stillroom at seeded moments, and checks that nothing was lost and nothing was paid for twice.
 * docs/durability.md. Exit 0 when every check holds, 1 when one does not, 2 on bad arguments.
 */

type Flags = { readonly kills: number; readonly seed: number; readonly json?: boolean; readonly keep?: boolean };

function parseFlags(args: readonly string[]): Flags {
  return new Command('npm run chaos --')
    .description('Kills parts of a running Stillroom, and checks that nothing was lost and nothing was paid for twice.')
    .option('--kills <n>', 'how many', wholeNumber(1), 20)
    .option('--seed <n>', 'what is killed when follows from it', wholeNumber(0), 1)
    .option('--json', 'print one JSON value instead of tables')
    .option('--keep', 'leave the folder with logs, database and trainer')
    .exitOverride()
    .parse(args, { from: 'user' })
    .opts<Flags>();
}

async function main({ kills, seed, json = false, keep = false }: Flags): Promise<number> {
  const stateDir = mkdtempSync(join(tmpdir(), 'stillroom-chaos-'));
  const runId = `chaos-${seed}-${kills}-${Date.now().toString(36)}`;
  sayWhatIsLeftWhenInterrupted(stateDir, runId);
  const schedule = scheduleOf(kills, seed);
  const run = await chaosRun({ schedule, runId, stateDir, tell: (line) => process.stderr.write(`${line}\n`) });
  const checks = checksOf(run);
  const ok = checks.every((check) => check.ok);
  process.stdout.write(json ? `${JSON.stringify({ ...summary(run), ok, checks }, null, 2)}\n` : `${report(run, checks)}\n`);
  if (keep || !ok) process.stderr.write(`kept for a look: ${stateDir}\n`);
  else forget(stateDir, runId);
  return ok ? 0 : 1;
}

/** What we started ends with us, a moment later; so the folder cannot go. */
function sayWhatIsLeftWhenInterrupted(stateDir: string, runId: string): void {
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, () => {
      process.stderr.write(`${signal}: everything that was started ends now; left are ${stateDir} and what the store has of ${runId}\n`);
      process.exit(exitCode);
    });
}

const summary = ({ runId, steps, kills, wallMs, books: { lost } }: ChaosRun) => ({ runId, steps, kills, wallMs, lost });

function forget(stateDir: string, runId: string): void {
  forgetRun(readAppSettings(), runId);
  rmSync(stateDir, { recursive: true, force: true });
}

try {
  process.exitCode = await main(parseFlags(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? 0 : 2;
}
