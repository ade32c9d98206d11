import { homedir } from 'node:os';
import { join } from 'node:path';

/** How this machine reaches the model hub, as its own tools are told: by the variables that they all read. */
export type HubAccess = {
  /** `HF_HUB_CACHE`, else `hub` below `HF_HOME`, else below the user's cache. */
  readonly cacheDir: string;
  /** `HF_ENDPOINT`, without a slash at its end; null is the client's own. */
  readonly endpoint: string | null;
  /** `HF_TOKEN`. It is sent to the hub and nowhere else, and is part of no message. */
  readonly token: string | null;
  /** `HF_HUB_OFFLINE`: nothing is downloaded. */
  readonly offline: boolean;
};

const TRUE = ['1', 'on', 'yes', 'true'];

export function hubAccess(variables: NodeJS.ProcessEnv = process.env): HubAccess {
  const given = (name: string) => variables[name]?.trim() || null;
  const home = given('HF_HOME') ?? join(given('XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'huggingface');
  return {
    cacheDir: given('HF_HUB_CACHE') ?? given('HUGGINGFACE_HUB_CACHE') ?? join(home, 'hub'),
    endpoint: given('HF_ENDPOINT')?.replace(/\/+$/, '') ?? null,
    token: given('HF_TOKEN'),
    offline: TRUE.includes((given('HF_HUB_OFFLINE') ?? '').toLowerCase()),
  };
}
