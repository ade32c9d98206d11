import { z } from 'zod';
import { BadRequest } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import { getJson, ofSome } from './request.ts';

/** What was used in one hour. A type that this client does not know keeps the service's own fields. */
export type UsageInfo =
  | { readonly type: 'training'; readonly tokenCount: number }
  | { readonly type: 'sampling_prefill'; readonly tokenCount: number; readonly isCached: boolean | null }
  | { readonly type: 'sampling_sample'; readonly tokenCount: number }
  | { readonly type: 'checkpoint'; readonly count: number }
  | { readonly type: 'storage'; readonly gigabyteHours: number; readonly isFree: boolean | null }
  | { readonly type: 'other'; readonly raw: Readonly<Record<string, unknown>> };

/** Null where the service does not say. Costs are estimates. */
export type UsageEvent = {
  /** Beginning and end of the hour, ISO 8601. */
  readonly bucketStart: string;
  readonly bucketEnd: string;
  readonly info: UsageInfo;
  readonly baseModel: string | null;
  readonly userId: string | null;
  readonly userName: string | null;
  readonly sessionId: string | null;
  readonly projectId: string | null;
  readonly estimatedCostUsd: number | null;
  readonly usdPerMillionTokens: number | null;
  readonly usdPerGigabyteMonth: number | null;
};

export type Usage = {
  readonly events: readonly UsageEvent[];
  /** The sessions that the events name, with their metadata. */
  readonly sessions: Readonly<Record<string, { readonly userMetadata: Readonly<Record<string, string>> | null }>>;
  /** Up to when costs are known, ISO 8601. */
  readonly costDataThrough: string | null;
};

export type StorageEntry = {
  readonly projectId: string | null;
  readonly userUrn: string | null;
  readonly userEmail: string | null;
  readonly userName: string | null;
  readonly checkpointCount: number;
  readonly sizeBytes: number;
  readonly sizeGigabytes: number | null;
  readonly estimatedMonthlyCostUsd: number | null;
};

export type StorageUsage = { readonly entries: readonly StorageEntry[]; readonly usdPerGigabyteMonth: number | null };

/** The half-open span [startingOn, endingBefore), at most 14 days. The service counts in hours of UTC. */
export type UsageWindow = { readonly startingOn: Date; readonly endingBefore: Date };

const LONGEST_WINDOW_MS = 14 * 24 * 3_600_000;

const count = z.number();
const knownInfo = z.discriminatedUnion('type', [
  z.object({ type: z.literal('training'), token_count: count }),
  z.object({ type: z.literal('sampling_prefill'), token_count: count, cached: z.boolean().nullish() }),
  z.object({ type: z.literal('sampling_sample'), token_count: count }),
  z.object({ type: z.literal('checkpoint'), count }),
  z.object({ type: z.literal('storage'), gigabyte_hours: z.number(), free: z.boolean().nullish() }),
]);

const usageSchema = z.object({
  data: z.array(
    z.object({
      bucket_start: z.string(),
      bucket_end: z.string(),
      base_model: z.string().nullish(),
      user_id: z.string().nullish(),
      user_name: z.string().nullish(),
      session_id: z.string().nullish(),
      project_id: z.string().nullish(),
      estimated_cost_usd: z.number().nullish(),
      effective_rate_usd_per_million_tokens: z.number().nullish(),
      effective_rate_usd_per_gigabyte_month: z.number().nullish(),
      event_info: z.record(z.string(), z.unknown()),
    }),
  ),
  sessions: z.record(z.string(), z.object({ user_metadata: z.record(z.string(), z.string()).nullish() })).nullish(),
  cost_data_through: z.string().nullish(),
});

const storageSchema = z.object({
  effective_rate_usd_per_gigabyte_month: z.number().nullish(),
  data: z.array(
    z.object({
      project_id: z.string().nullish(),
      org_user_urn: z.string().nullish(),
      user_email: z.string().nullish(),
      user_name: z.string().nullish(),
      checkpoint_count: z.number(),
      size_bytes: z.number(),
      size_gigabytes: z.number().nullish(),
      estimated_monthly_cost_usd: z.number().nullish(),
    }),
  ),
});

/** Calls throw BadRequest with status 404, 405 or 501 where the service does not have them. */
export class Billing {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** What was used, by the hour. @throws BadRequest when the window is empty or longer than 14 days */
  async usage({ startingOn, endingBefore }: UsageWindow): Promise<Usage> {
    assertWindow(startingOn, endingBefore);
    const query = { starting_on: isoSeconds(startingOn), ending_before: isoSeconds(endingBefore) };
    const { data, sessions, cost_data_through } = await ofSome(
      getJson(this.#caller, 'billing/usage/events', query, usageSchema),
      'billing calls',
    );
    const entries = Object.entries(sessions ?? {}).map(([id, { user_metadata }]) => [id, { userMetadata: user_metadata ?? null }] as const);
    return { events: data.map(eventOf), sessions: Object.fromEntries(entries), costDataThrough: cost_data_through ?? null };
  }

  /** What saved checkpoints take up now. */
  async checkpointStorage(options: { readonly projectId?: string } = {}): Promise<StorageUsage> {
    const query = { project_id: options.projectId };
    const lacking = options.projectId === undefined ? 'billing calls' : `billing calls, or no project ${options.projectId}`;
    const { data, ...usage } = await ofSome(getJson(this.#caller, 'billing/usage/checkpoints/current', query, storageSchema), lacking);
    const entries = data.map((entry) => ({
      projectId: entry.project_id ?? null,
      userUrn: entry.org_user_urn ?? null,
      userEmail: entry.user_email ?? null,
      userName: entry.user_name ?? null,
      checkpointCount: entry.checkpoint_count,
      sizeBytes: entry.size_bytes,
      sizeGigabytes: entry.size_gigabytes ?? null,
      estimatedMonthlyCostUsd: entry.estimated_monthly_cost_usd ?? null,
    }));
    return { entries, usdPerGigabyteMonth: usage.effective_rate_usd_per_gigabyte_month ?? null };
  }
}

function assertWindow(startingOn: Date, endingBefore: Date): void {
  const lengthMs = endingBefore.getTime() - startingOn.getTime();
  if (lengthMs > 0 && lengthMs <= LONGEST_WINDOW_MS) return;
  const days = (lengthMs / 86_400_000).toFixed(1);
  throw new BadRequest(`endingBefore must be after startingOn, by at most 14 days; it is ${days} days`, { call: 'billing/usage/events' });
}

function eventOf(event: z.infer<typeof usageSchema>['data'][number]): UsageEvent {
  return {
    bucketStart: event.bucket_start,
    bucketEnd: event.bucket_end,
    info: infoOf(event.event_info),
    baseModel: event.base_model ?? null,
    userId: event.user_id ?? null,
    userName: event.user_name ?? null,
    sessionId: event.session_id ?? null,
    projectId: event.project_id ?? null,
    estimatedCostUsd: event.estimated_cost_usd ?? null,
    usdPerMillionTokens: event.effective_rate_usd_per_million_tokens ?? null,
    usdPerGigabyteMonth: event.effective_rate_usd_per_gigabyte_month ?? null,
  };
}

function infoOf(raw: Readonly<Record<string, unknown>>): UsageInfo {
  const parsed = knownInfo.safeParse(raw);
  if (!parsed.success) return { type: 'other', raw };
  const info = parsed.data;
  switch (info.type) {
    case 'checkpoint':
      return info;
    case 'storage':
      return { type: info.type, gigabyteHours: info.gigabyte_hours, isFree: info.free ?? null };
    case 'sampling_prefill':
      return { type: info.type, tokenCount: info.token_count, isCached: info.cached ?? null };
    default:
      return { type: info.type, tokenCount: info.token_count };
  }
}

/** `2026-01-31T12:00:00Z` */
function isoSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
