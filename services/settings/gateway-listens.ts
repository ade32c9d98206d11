import type { AppSettings } from './app-settings.ts';

/** What a person is told when the gateway cannot listen where the settings say. */
export function cannotListen({ host, port }: AppSettings['gateway'], cause: NodeJS.ErrnoException): Error {
  const told =
    cause.code === 'EADDRINUSE'
      ? `gateway.port ${port} on ${host} is taken, by another worker perhaps: leave gateway.port out, or give each worker its own`
      : `the gateway cannot listen at gateway.host ${host}, gateway.port ${port}: ${cause.message}`;
  return new Error(told, { cause });
}
