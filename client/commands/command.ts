import type { Command } from 'commander';
import { type Console, openConsole } from '../console.ts';

/** Adds a command that has `--json`; the action gets the console that fits and its exit code is the process's. */
export function addCommand(program: Command, nameAndArguments: string, description: string): Command {
  return program.command(nameAndArguments).description(description).option('--json', 'print one JSON value instead of text');
}

/** Wraps an action: opens the console, and leaves the exit code for the end of the process. */
export function run<Options extends { json?: boolean }, Args extends unknown[]>(
  action: (console: Console, options: Options, ...args: Args) => Promise<number>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    // commander calls with the arguments, then the options, then the command itself
    const options = given.at(-2) as Options;
    process.exitCode = await action(openConsole(options.json === true), options, ...(given.slice(0, -2) as Args));
  };
}
