import { expect, it } from 'vitest';
import { death } from './death.ts';

it('what failed first comes first, however much fails while it is cleared away', async () => {
  const fails = async () => {
    await using cleanup = new AsyncDisposableStack();
    for (const what of ['connection', 'folder'])
      cleanup.defer(() => {
        throw new Error(`the ${what} is in use`);
      });
    throw Object.assign(new Error('the port is taken'), { exitCode: 2 });
  };
  const { message, exitCode } = death(await fails().catch((error) => error));
  expect(exitCode).toBe(2);
  expect(message).toMatch(/^the port is taken\n.*the folder is in use.*the connection is in use/s);
});

it('an error alone says its message, and anything else itself', () => {
  expect(death(new Error('no server'))).toEqual({ message: 'no server', exitCode: 1 });
  expect(death('lost')).toEqual({ message: 'lost', exitCode: 1 });
});
