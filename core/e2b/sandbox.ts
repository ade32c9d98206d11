/** A sandbox as the E2B API lists it. */
export type RunningSandbox = {
  readonly sandboxId: string;
  readonly startedAtMs: number;
  readonly metadata: Readonly<Record<string, string>>;
};

const SESSION_SUFFIX = '__env';

/** The trial behind a harbor session id (`<trial>__env`); null for an id that is not harbor's. */
export function trialNameOf(sessionId: string): string | null {
  return sessionId.endsWith(SESSION_SUFFIX) && sessionId.length > SESSION_SUFFIX.length ? sessionId.slice(0, -SESSION_SUFFIX.length) : null;
}

/** The trial that harbor made a sandbox for; null when its metadata does not carry both of harbor's marks. */
export function harborTrialOf({ metadata }: Pick<RunningSandbox, 'metadata'>): string | null {
  return metadata.environment_name ? trialNameOf(metadata.session_id ?? '') : null;
}
