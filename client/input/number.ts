import { InvalidArgumentError } from 'commander';

/** Parsers of option values for commander, which names the option and the value in its message. */
export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
      throw new InvalidArgumentError(`It must be a whole number, ${least} or more.`);
    return value;
  };
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It must be a number above 0.');
  return value;
}

export function portNumber(text: string): number {
  const value = wholeNumber(1)(text);
  if (value > 65_535) throw new InvalidArgumentError('A port is at most 65535.');
  return value;
}
