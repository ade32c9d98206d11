import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { CredentialRefused, SettingMissing, TinkerClient, TinkerError, type TrainingBodies } from '../../services/tinker/index.ts';
import { Recorder, ServiceGone } from './recorder.ts';
import { OutUnwritable, ResultsFile } from './results-file.ts';
import { givesSignOfLife } from './sign-of-life.ts';
import { STEPS } from './step-names.ts';
import { drive } from './steps.ts';
import { summaryOf } from './summary.ts';

/**
 * `npm run drive-tinker`: puts our client through the calls that the official client's recordings were made with, and writes what it
 * got in the recordings' shape. Exit 0 when every step ran, whatever it met; 1 when the service cannot be reached or goes away (what
 * it was asked until then is written), or the results can no longer be written; 2 on bad settings.
 */

const LOOPBACK_KEY = 'tml-dev';

type Flags = {
  readonly baseUrl: string;
  readonly model: string;
  readonly out: string;
  readonly skip: readonly string[];
  readonly trainingBodies: TrainingBodies;
  readonly stepTimeoutSeconds: number;
  readonly patienceSeconds: number;
};

function parseFlags(args: readonly string[]): Flags {
  const command = new Command('npm run drive-tinker --')
    .description('Drives our Tinker client through every call of interest and writes what it got. The key is TINKER_API_KEY.')
    .requiredOption('--base-url <url>', 'address of the service, without /api/v1', parseUrl)
    .requiredOption('--model <name>', "the service's base model")
    .requiredOption('--out <file>', 'JSON file for the results, written after every step')
    .option('--skip <steps>', 'steps to leave out, with commas between', parseSteps, [])
    .addOption(
      new Option('--training-bodies <form>', 'json for servers of before protobuf').choices(['protobuf', 'json']).default('protobuf'),
    )
    .option('--step-timeout <seconds>', 'for steps that name no time of their own', parseSeconds, 60)
    .option('--patience <seconds>', 'how long the service may give no sign of life', parseSeconds, 5)
    .exitOverride()
    .parse(args, { from: 'user' });
  const { stepTimeout, patience, ...flags } = command.opts<Omit<Flags, `${string}Seconds`> & { stepTimeout: number; patience: number }>();
  return { ...flags, stepTimeoutSeconds: stepTimeout, patienceSeconds: patience };
}

async function main(args: readonly string[]): Promise<number> {
  let flags: Flags;
  try {
    flags = parseFlags(args);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  const { baseUrl } = flags;
  const apiKey = process.env.TINKER_API_KEY || loopbackKey(baseUrl);
  if (!apiKey) return failed('set TINKER_API_KEY to a key of the service', 2);
  let out: ResultsFile;
  try {
    out = new ResultsFile(flags.out);
  } catch (error) {
    if (!(error instanceof OutUnwritable)) throw error;
    return failed(error.message, 2);
  }
  try {
    await driveInto(out, apiKey, flags);
    return 0;
  } catch (error) {
    if (error instanceof ServiceGone) return failed(`${error.message}; what it was asked until then is in ${out.path}`, 1);
    if (error instanceof SettingMissing || error instanceof CredentialRefused) return failed(error.message, 2);
    if (error instanceof TinkerError || error instanceof OutUnwritable) return failed(error.message, 1);
    throw error;
  }
}

async function driveInto(out: ResultsFile, apiKey: string, flags: Flags): Promise<void> {
  const { baseUrl, model, skip, trainingBodies } = flags;
  const [stepTimeoutMs, patienceMs] = [flags.stepTimeoutSeconds * 1000, flags.patienceSeconds * 1000];
  const client = await TinkerClient.connect({ baseUrl, apiKey, trainingBodies, noProgressMs: patienceMs });
  const sdk = `${packageJson.name}-${packageJson.version}`;
  const isServiceThere = () => givesSignOfLife(baseUrl, patienceMs);
  const recorder = new Recorder({ sdk, out, skip: new Set(skip), stepTimeoutMs, isServiceThere });
  await drive({ recorder, client, baseUrl, apiKey, model });
  console.log(summaryOf(recorder.results.steps, out.path));
}

function loopbackKey(baseUrl: string): string | null {
  if (!['127.0.0.1', 'localhost', '[::1]'].includes(new URL(baseUrl).hostname)) return null;
  console.log(`no TINKER_API_KEY: ${baseUrl} is on this machine, so the key is ${LOOPBACK_KEY}`);
  return LOOPBACK_KEY;
}

function parseUrl(text: string): string {
  if (!/^https?:/.test(text) || !URL.canParse(text)) throw new InvalidArgumentError('must be an http or https address');
  return text.replace(/\/+$/, '');
}

function parseSteps(text: string): readonly string[] {
  const names = text.split(',').filter(Boolean);
  const unknown = names.filter((name) => !STEPS.some((step) => step === name));
  if (unknown.length === 0) return names;
  throw new InvalidArgumentError(`no step is called ${unknown.join(', ')}; the steps are:\n  ${STEPS.join('\n  ')}`);
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new InvalidArgumentError('must be a number of seconds above 0');
  return seconds;
}

function failed(message: string, code: number): number {
  console.error(`drive-tinker: ${message}`);
  return code;
}

// A step that timed out and could not be aborted may still be waiting: it must not keep the process.
process.exit(await main(process.argv.slice(2)));
