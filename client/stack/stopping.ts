import type { Interrupt } from '../interrupt.ts';
import type { Stack } from './stack.ts';

/** Stops a stack in order. Another Ctrl-C meanwhile means that the person will not wait: everything is killed. */
export async function endStack(stack: Stack, interrupt: Interrupt, tell: (text: string) => void): Promise<void> {
  interrupt.onAgain(() => {
    tell('killing everything');
    stack.kill();
  });
  tell('stopping …');
  await stack.stop();
}
