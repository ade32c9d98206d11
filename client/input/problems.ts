import { CliError } from '../errors.ts';

/** Collects everything that is wrong with an input, so that a person mends it in one go. */
export class Problems {
  private readonly found: string[] = [];

  add(...problems: readonly string[]): void {
    this.found.push(...problems);
  }

  /** @throws CliError (bad input) with all problems, one a line, when there are any. */
  throwIfAny(): void {
    if (this.found.length === 1) throw new CliError(this.found.join(''));
    if (this.found.length > 1)
      throw new CliError(`${this.found.length} things are wrong:\n${this.found.map((it) => `  ${it}`).join('\n')}`);
  }
}
