import type { Stack } from './stack.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Stops a stack in order. A signal meanwhile means that the person will not wait: everything is killed. */
export async function endStack(stack: Stack, tell: (text: string) => void): Promise<void> {
  const force = () => {
    tell('killing everything');
    stack.kill();
  };
  for (const signal of SIGNALS) process.on(signal, force);
  try {
    tell('stopping …');
    await stack.stop();
  } finally {
    for (const signal of SIGNALS) process.off(signal, force);
  }
}
