import { exec } from 'node:child_process';
import { CredentialRefused, SettingMissing } from '../errors.ts';
import { defaultKeyOfFile } from './credentials-file.ts';

/** Where a raw credential comes from. */
export type CredentialSource = {
  /** The setting to look at when it is refused. */
  readonly setting: string;
  readonly get: () => string | Promise<string>;
  /** Ends what `get` waits for; it is not called any more. */
  readonly stop?: () => void;
};

export type CredentialSources = {
  /** The first that is set of: key, command, file. */
  readonly main: CredentialSource;
  /** The credential command, for services that take nothing else. */
  readonly command: CredentialSource | null;
};

type Given = { readonly apiKey?: string; readonly credentialCmd?: string };

const COMMAND_TIMEOUT_MS = 60_000;

/**
 * An empty value counts as unset. Any key is sent as it is; whether it is good is the service's to say.
 * @throws SettingMissing when nothing is set, CredentialRefused when the credentials file cannot be used
 */
export function findCredentials(options: Given): CredentialSources {
  const apiKey = (options.apiKey || process.env.TINKER_API_KEY || '').trim();
  const commandLine = options.credentialCmd || process.env.TINKER_CREDENTIAL_CMD;
  const command = commandLine ? commandSource(commandLine) : null;
  if (apiKey) return { main: keySource('TINKER_API_KEY', apiKey), command };
  if (command !== null) return { main: command, command };
  const stored = defaultKeyOfFile();
  if (stored !== null) return { main: keySource(stored.file, stored.key), command };
  throw new SettingMissing('no TINKER_API_KEY: set it to a key of the service, or TINKER_CREDENTIAL_CMD to a command that prints one', {
    call: 'connect',
  });
}

function keySource(setting: string, key: string): CredentialSource {
  assertHeaderValue(setting, key);
  return { setting, get: () => key };
}

/** Run by a shell for every use; requests that need it at the same time share one run. */
function commandSource(commandLine: string): CredentialSource {
  let running: Promise<string> | null = null;
  const stopping = new AbortController();
  const get = () => {
    running ??= runCommand(commandLine, stopping.signal).finally(() => {
      running = null;
    });
    return running;
  };
  return { setting: COMMAND_SETTING, get, stop: () => stopping.abort() };
}

const COMMAND_SETTING = 'TINKER_CREDENTIAL_CMD';

/** What the command prints is a secret, also when it fails: no error repeats it. */
function runCommand(commandLine: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const refuse = (how: string) =>
      reject(new CredentialRefused(`the command of ${COMMAND_SETTING} ${how}; run it by hand`, { call: 'credential command' }));
    exec(commandLine, { timeout: COMMAND_TIMEOUT_MS, encoding: 'utf8', signal }, (error, stdout) => {
      if (signal.aborted) return refuse('was ended because the client was closed');
      if (error?.killed) return refuse(`was ended after ${COMMAND_TIMEOUT_MS / 1000} s`);
      if (error !== null) return refuse(error.signal ? `was ended by ${error.signal}` : `failed with exit code ${error.code}`);
      const credential = stdout.trim();
      if (credential === '') return refuse('printed nothing');
      try {
        assertHeaderValue(COMMAND_SETTING, credential);
        resolve(credential);
      } catch (unusable) {
        reject(unusable);
      }
    });
  });
}

/** @throws CredentialRefused when no HTTP header can carry it */
export function assertHeaderValue(setting: string, credential: string): void {
  if (/^[\x21-\x7e]+$/.test(credential)) return;
  throw new CredentialRefused(`the credential of ${setting} holds spaces, line breaks or other characters that no key has`, {
    call: 'connect',
  });
}
