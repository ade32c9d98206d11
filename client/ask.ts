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
      const answer = (await lines.question(`${question} ${choices} `, { signal })).trim().toLowerCase();
      if (answer === 'y' || answer === 'yes') return true;
      if (answer === 'n' || answer === 'no') return false;
      if (answer === '' && byDefault !== null) return byDefault;
    }
  } finally {
    lines.close();
  }
}
