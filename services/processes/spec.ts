/** How a process shows that it serves. */
export type Ready =
  /** A line of its stdout matches. */
  | { readonly kind: 'line'; readonly pattern: RegExp }
  /** It accepts connections on this port of 127.0.0.1. */
  | { readonly kind: 'tcp'; readonly port: number }
  /** This answers true; a rejection counts as "not yet". Asked every 100 ms. */
  | { readonly kind: 'check'; readonly isReady: (signal: AbortSignal) => Promise<boolean> };

/** One process that the supervisor keeps running. */
export type ProcessSpec = {
  /** Short and unique; also the name of its log file. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** Added to our own environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly ready: Ready;
  /** How long it may take from its start until it is ready. */
  readonly readyTimeoutMs: number;
  /** How long it may take to end after SIGTERM before it is killed. Default 10 s. */
  readonly stopGraceMs?: number;
  /**
   * What ends it when we die without a word (SIGKILL): `wrapper` puts the leash program around any command; `self` is for our own programs,
   * which watch their stdin with `endWithParent` and so can clean up.
   */
  readonly leash: 'wrapper' | 'self';
};

/** What a notice is about; `line` is for a person. */
export type Notice = { readonly process: string; readonly kind: 'died' | 'restarted' | 'failed'; readonly line: string };
