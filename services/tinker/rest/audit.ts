import { z } from 'zod';
import type { Caller } from '../http/caller.ts';
import { getJson } from './request.ts';

export type AuditEntry = {
  /** ISO 8601. */
  readonly timestamp: string;
  readonly event: string;
  /** As the service describes it. */
  readonly details: unknown;
};

const auditSchema = z.object({ entries: z.array(z.object({ timestamp: z.string(), event: z.string(), event_details: z.unknown() })) });

/** What was done with the account. `day`: `YYYY-MM-DD`; absent = as the service chooses. `eventType`: default all. */
export async function auditLog(
  caller: Caller,
  { eventType = 'all', day }: { readonly eventType?: string; readonly day?: string } = {},
): Promise<AuditEntry[]> {
  const { entries } = await getJson(caller, 'audit', { event_type: eventType, day }, auditSchema);
  return entries.map(({ timestamp, event, event_details }) => ({ timestamp, event, details: event_details }));
}
