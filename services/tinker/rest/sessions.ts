import { z } from 'zod';
import type { Caller } from '../http/caller.ts';
import type { PageOptions } from './paging.ts';
import { type AccessScope, getJson, postJson, sendOnly } from './request.ts';

/** What a session has opened. */
export type SessionInfo = {
  readonly trainingRunIds: readonly string[];
  readonly samplerIds: readonly string[];
  readonly userMetadata: Readonly<Record<string, string>> | null;
  readonly displayName: string | null;
};

export type SessionSearch = {
  /** Entries that the sessions' metadata must have. Default: any. */
  readonly userMetadata?: Readonly<Record<string, string>>;
  readonly displayName?: string;
  /** Default 50. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: SearchCursor | null;
};

/** The service's own: it goes back as it came. */
export type SearchCursor = string | Readonly<Record<string, unknown>>;

/** `sessions` as the service describes them: it may add fields. */
export type FoundSessions = { readonly sessions: readonly unknown[]; readonly nextCursor: SearchCursor | null };

const infoSchema = z.object({
  training_run_ids: z.array(z.string()),
  sampler_ids: z.array(z.string()),
  user_metadata: z.record(z.string(), z.string()).nullish(),
  display_name: z.string().nullish(),
});
const listSchema = z.object({ sessions: z.array(z.string()) });
const foundSchema = z.object({
  sessions: z.array(z.unknown()),
  next_cursor: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
});

type Scope = { readonly accessScope?: AccessScope };

export class Sessions {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** @throws BadRequest when there is no such session */
  async get(sessionId: string, { accessScope = 'owned' }: Scope = {}): Promise<SessionInfo> {
    const info = await getJson(this.#caller, `sessions/${sessionId}`, { access_scope: accessScope }, infoSchema);
    return {
      trainingRunIds: info.training_run_ids,
      samplerIds: info.sampler_ids,
      userMetadata: info.user_metadata ?? null,
      displayName: info.display_name ?? null,
    };
  }

  /** One page of session ids. */
  async page({ limit = 20, offset = 0, accessScope = 'owned' }: PageOptions & Scope = {}): Promise<readonly string[]> {
    return (await getJson(this.#caller, 'sessions', { limit, offset, access_scope: accessScope }, listSchema)).sessions;
  }

  /** The caller's own sessions that fit. */
  async search({ userMetadata = {}, displayName, limit = 50, cursor }: SessionSearch = {}): Promise<FoundSessions> {
    const body = { user_metadata: userMetadata, display_name: displayName, owner: { type: 'own' }, limit, cursor: cursor ?? undefined };
    const { sessions, next_cursor } = await postJson(this.#caller, 'sessions/search', body, foundSchema);
    return { sessions, nextCursor: next_cursor ?? null };
  }

  /** Lists and bills the session under another project from now on. */
  async assignProject(sessionId: string, projectId: string): Promise<void> {
    await sendOnly(this.#caller, 'PUT', `sessions/${sessionId}/project`, { project_id: projectId });
  }
}
