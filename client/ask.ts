import { createInterface } from 'node:readline/promises';

/**
 * Asks y/n at the terminal until one of them is typed; just Enter means `byDefault`, where there is one. Rejects with an AbortError when `signal` fires: the question is not open any more.
 * Ctrl-C reaches the process as always; the line editor would keep it to itself.
 */
export async function askYesNo(question: string, signal: AbortSignal, byDefault: boolean | null = null): Promise<boolean> {
  const choices = byDefault === null ? '[y/n]' : byDefault ? '[Y/n]' : '[y/N]';
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  lines.on('SIGINT', () => process.emit('SIGINT'));
  try {
    for (;;) {
      const answer = yesOrNo(await lines.question(`${question} ${choices} `, { signal }), byDefault);
      if (answer !== null) return answer;
    }
  } finally {
    lines.close();
  }
}

/** What a typed line answers; null when it is neither yes nor no. */
export function yesOrNo(line: string, byDefault: boolean | null): boolean | null {
  const answer = line.trim().toLowerCase();
  if (answer === 'y' || answer === 'yes') return true;
  if (answer === 'n' || answer === 'no') return false;
  return answer === '' ? byDefault : null;
}
