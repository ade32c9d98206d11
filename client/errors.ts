import { COMMAND } from './command-name.ts';
import { EXIT } from './exit-codes.ts';

/** Something a person can mend: shown as one message without a stack, and the process ends with `exitCode`. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.badInput) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The server is there, but no worker answered in time. Following a run rides this out; a single question reports it. */
export class NoAnswer extends CliError {
  constructor(what: string) {
    super(
      `no worker answered ${what}; is one running? \`${COMMAND} up\` starts everything, \`${COMMAND} worker\` one more worker`,
      EXIT.failed,
    );
  }
}

/** No server, or it went away. Following a run rides this out too. */
export class NoServer extends CliError {
  constructor(address: string) {
    super(
      `no Temporal server answers at ${address}; start one with \`${COMMAND} up\`, or name another with TEMPORAL_ADDRESS (or TEMPORAL_PROFILE)`,
    );
  }
}
