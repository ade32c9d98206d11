import { resolve } from 'node:path';
import type { Command } from 'commander';
import { readJobTemplate } from '../../services/harbor/index.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import type { Console } from '../console.ts';
import { examine } from '../doctor/examine.ts';
import { isBroken } from '../doctor/finding.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { doctorText } from '../view/doctor-text.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean; readonly jobTemplate?: string };

/** What gave no answer in time may hold a socket or a process open. */
const EXIT_MS = 1_000;

export function addDoctor(program: Command): void {
  addCommand(program, 'doctor', 'say which environments work on this machine, and what is missing')
    .option('--job-template <file>', 'look only at what trials of this job template need')
    .action(run<Options, []>(doctor));
}

async function doctor(console: Console, { jobTemplate }: Options): Promise<number> {
  const settings = readAppSettings();
  const findings = await examine(settings, await templateOf(jobTemplate), process.env.STILLROOM_SANDBOX === 'plain' ? 'plain' : 'bwrap');
  console.result({ ok: !isBroken(findings), findings });
  console.print(doctorText(findings, console.colors));
  setTimeout(() => process.exit(), EXIT_MS).unref();
  return isBroken(findings) ? EXIT.badInput : EXIT.ok;
}

async function templateOf(file: string | undefined) {
  if (file === undefined) return null;
  try {
    return await readJobTemplate(resolve(file));
  } catch (error) {
    throw new CliError((error as Error).message);
  }
}
