import { createInterface } from 'node:readline/promises';

/**
 * Asks y/n at the terminal until one of them is typed. Rejects with an AbortError when `signal` fires: the question is not open any more.
 * Ctrl-C reaches the process as always; the line editor would keep it to itself.
 */
export async function askYesNo(question: string, signal: AbortSignal): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  lines.on('SIGINT', () => process.emit('SIGINT'));
  try {
    for (;;) {
      const answer = (await lines.question(`${question} [y/n] `, { signal })).trim().toLowerCase();
      if (answer === 'y' || answer === 'yes') return true;
      if (answer === 'n' || answer === 'no') return false;
    }
  } finally {
    lines.close();
  }
}
