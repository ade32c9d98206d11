import pc from 'picocolors';

export type Colors = ReturnType<typeof pc.createColors>;

/** Where a command speaks. Results go to stdout; what merely accompanies them goes to stderr when stdout is JSON. */
export type Console = {
  /** A person sits at both ends: questions may be asked and lines redrawn. */
  readonly interactive: boolean;
  readonly json: boolean;
  readonly colors: Colors;
  /** Text for the reader: a result, or progress; nothing when the result is JSON. */
  print(text: string): void;
  /** A remark that must be seen in every mode, on stderr. */
  remark(text: string): void;
  /** The one JSON value of `--json`. */
  result(value: unknown): void;
};

export function openConsole(json: boolean, { stdin, stdout, stderr, env } = process): Console {
  const interactive = !json && stdin.isTTY === true && stdout.isTTY === true && env.TERM !== 'dumb';
  const colored = !json && stdout.isTTY === true && env.TERM !== 'dumb' && !env.NO_COLOR;
  return {
    interactive,
    json,
    colors: pc.createColors(colored),
    print: (text) => {
      if (!json) stdout.write(`${text}\n`);
    },
    remark: (text) => {
      stderr.write(`${text}\n`);
    },
    result: (value) => {
      if (json) stdout.write(`${JSON.stringify(value, null, 2)}\n`);
    },
  };
}
