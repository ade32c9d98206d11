/** What the service keeps with a session. */
export type SessionOptions = {
  /** Default: TINKER_TAGS, split at commas. */
  readonly tags?: readonly string[];
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** The project that pays and that the session is listed under. Default: TINKER_PROJECT_ID. */
  readonly projectId?: string;
  readonly displayName?: string;
};

/** The body of `create_session`. An empty variable counts as unset. */
export function createSessionBody(options: SessionOptions, protocolVersion: string): string {
  return JSON.stringify({
    tags: options.tags ?? tagsIn(process.env.TINKER_TAGS ?? ''),
    user_metadata: options.userMetadata ?? {},
    sdk_version: protocolVersion,
    project_id: options.projectId ?? defaultProjectId(),
    display_name: options.displayName,
    type: 'create_session',
  });
}

export function defaultProjectId(): string | undefined {
  return process.env.TINKER_PROJECT_ID || undefined;
}

function tagsIn(list: string): string[] {
  return list.split(',').flatMap((tag) => tag.trim() || []);
}
