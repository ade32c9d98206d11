#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { addAnswers } from './commands/answers.ts';
import { addBlobs } from './commands/blobs.ts';
import { addCheckpoints } from './commands/checkpoints.ts';
import { addDemo } from './commands/demo.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEstimate } from './commands/estimate.ts';
import { addHarnessCommands } from './commands/harness.ts';
import { addRuns } from './commands/runs.ts';
import { addStart } from './commands/start.ts';
import { addStatus } from './commands/status.ts';
import { addTrial } from './commands/trial.ts';
import { addUp } from './commands/up.ts';
import { addWatch } from './commands/watch.ts';
import { addWorker } from './commands/worker.ts';
import { EXIT } from './exit-codes.ts';

/** The `stillroom` command: declares its parts, runs one, and turns what a person can mend into one message and an exit code. */
const program = new Command('stillroom')
  .description("Distills a coding agent's model on real terminal tasks, as a durable Temporal workflow.")
  .helpCommand(false)
  .showHelpAfterError('(stillroom --help lists the commands and options)')
  .exitOverride();

for (const add of [
  addDemo,
  addUp,
  addWorker,
  addDoctor,
  addEstimate,
  addStart,
  addWatch,
  addStatus,
  addCheckpoints,
  addTrial,
  addAnswers,
  addRuns,
  addBlobs,
  addHarnessCommands,
])
  add(program);

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOfError(error);
}

function exitCodeOfError(error: unknown): number {
  // commander has printed its own message already; help is no error
  if (error instanceof CommanderError) return error.exitCode === 0 || error.code === 'commander.help' ? EXIT.ok : EXIT.badInput;
  if (error instanceof Error && 'exitCode' in error && typeof error.exitCode === 'number') {
    process.stderr.write(`${error.message}\n`);
    return error.exitCode;
  }
  if (isAboutFiles(error)) {
    process.stderr.write(`cannot use ${error.path}: ${error.message}\n`);
    return EXIT.badInput;
  }
  throw error;
}

/** A folder or file that a person named or owns and that the system refuses: read-only, full, not a folder. */
function isAboutFiles(error: unknown): error is NodeJS.ErrnoException & { readonly path: string } {
  return error instanceof Error && 'path' in error && typeof error.path === 'string' && 'code' in error && 'syscall' in error;
}
