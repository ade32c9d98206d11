import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type Plan, readPlan } from './faults/plan.ts';
import { StateError } from './service/failures.ts';
import { startTrainer, type TrainerOptions } from './service/start.ts';

/** The embedded trainer as a process: prints one JSON line `{"ready":true,"url":…}` when it serves. Exit code 2: it cannot start as asked. */

const flags = new Command('npm run trainer --')
  .description('Serves the tiny models over the Tinker protocol on this machine. State survives a restart, however it ends.')
  .requiredOption('--port <number>', 'port on 127.0.0.1', parsePort)
  .requiredOption('--state <folder>', 'folder for sessions, models and checkpoints')
  .option('--weights <folder>', 'folder of the base models', fileURLToPath(new URL('./weights', import.meta.url)))
  .option('--api-key <key>', 'the only key let in; without it any key that starts with tml- is')
  .addOption(
    new Option(
      '--faults <file>',
      'for tests: fail as this plan says (docs/trainer-faults.md); - starts with none and takes plans at /faults',
    ).env('STILLROOM_TRAINER_FAULTS'),
  )
  .addOption(
    new Option('--call-log <file>', 'append a JSON line for each call that was carried out, with its tokens').env(
      'STILLROOM_TRAINER_CALL_LOG',
    ),
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ port: number; state: string; weights: string; apiKey?: string; faults?: string; callLog?: string }>();

const weightsFolder = resolve(flags.weights);
const options: TrainerOptions = {
  port: flags.port,
  stateFolder: resolve(flags.state),
  models: ['tiny-teacher', 'tiny-student'].map((name) => ({
    name: `stillroom/${name}`,
    weightsPath: join(weightsFolder, `${name}.safetensors`),
  })),
  keys: flags.apiKey === undefined ? { prefix: 'tml-' } : { onlyKey: flags.apiKey },
  faults: flags.faults === undefined ? null : faultsIn(flags.faults),
  callLogFile: flags.callLog === undefined ? null : resolve(flags.callLog),
  now: () => new Date(),
  onFatal: (reason) => fail(reason instanceof Error ? (reason.stack ?? reason.message) : String(reason), 1),
};

const missing = options.models.find(({ weightsPath }) => !existsSync(weightsPath));
if (missing !== undefined) fail(`--weights ${weightsFolder}: ${missing.weightsPath} is missing`, 2);

try {
  mkdirSync(options.stateFolder, { recursive: true });
  const trainer = await startTrainer(options);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void trainer.stop().then(() => process.exit(0)));
  process.stdout.write(`${JSON.stringify({ ready: true, url: trainer.url })}\n`);
} catch (error) {
  if (error instanceof StateError) fail(error.message, 2);
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    fail(`--port ${options.port}: the port is in use; stop what uses it or choose another port`, 2);
  }
  throw error;
}

function fail(message: string, code: number): never {
  process.stderr.write(`trainer: ${message}\n`);
  process.exit(code);
}

function faultsIn(file: string): Plan {
  if (file === '-') return [];
  try {
    return readPlan(readFileSync(file, 'utf8'), `--faults ${file}`);
  } catch (error) {
    return fail(error instanceof StateError ? error.message : `--faults ${file}: cannot be read: ${String(error)}`, 2);
  }
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('must be a port number, or 0 for any free port');
  return port;
}
