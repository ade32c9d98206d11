import { Hono } from 'hono';
import { z } from 'zod';
import type { Service } from '../service.ts';
import type { Session } from '../session-records.ts';
import { page, parseWith, readJson } from './bodies.ts';

const statusQuery = z.discriminatedUnion('type', [
  z.object({ type: z.enum(['active', 'cancelled', 'failed']) }),
  z.object({ type: z.literal('client_finished'), reasons: z.array(z.string()).nullish() }),
]);
const search = z.object({
  session_id: z.string().nullish(),
  project_ids: z.array(z.string()).nullish(),
  user_metadata: z.record(z.string(), z.string()).default({}),
  display_name: z.string().min(1).nullish(),
  statuses: z.array(statusQuery).nullish(),
  limit: z.number().int().min(1).max(200).default(50),
  cursor: z.object({ last_created_at: z.coerce.date(), last_session_id: z.string() }).nullish(),
});
type Search = z.infer<typeof search>;

/** Looking sessions up. All are the caller's own: who has a key owns everything here. */
export function sessionListRoutes(service: Service): Hono {
  const { sessions, runs } = service;
  return new Hono()
    .get('/sessions', (c) => {
      const { limit, offset } = parseWith(page(20), c.req.query());
      return c.json({
        sessions: sessions
          .all()
          .slice(offset, offset + limit)
          .map(({ sessionId }) => sessionId),
      });
    })
    .get('/sessions/:id', (c) => {
      const { sessionId, userMetadata, displayName } = sessions.get(c.req.param('id'));
      return c.json({
        training_run_ids: runs.ofSession(sessionId).map((run) => run.model.modelId),
        sampler_ids: sessions.samplersOf(sessionId).map((sampler) => sampler.samplerId),
        user_metadata: userMetadata,
        display_name: displayName,
      });
    })
    .post('/sessions/search', async (c) => {
      const wanted = await readJson(c, search);
      const found = sessions.all().filter((session) => matches(session, wanted) && isBehind(session, wanted.cursor ?? null));
      const shown = found.slice(0, wanted.limit);
      const last = found.length > shown.length ? shown.at(-1) : undefined;
      return c.json({
        sessions: shown.map((session) => summary(service, session)),
        next_cursor: last === undefined ? null : { last_created_at: last.createdAt, last_session_id: last.sessionId },
      });
    })
    .put('/sessions/:id/project', async (c) => {
      const { project_id: projectId } = await readJson(c, z.object({ project_id: z.string() }));
      sessions.moveToProject(c.req.param('id'), projectId);
      return c.body(null, 204);
    });
}

function matches(session: Session, wanted: Search): boolean {
  const words = wanted.display_name?.toLowerCase().split(/\s+/) ?? null;
  const name = session.displayName?.toLowerCase() ?? '';
  const isNamed = words?.every((word) => name.includes(word)) ?? false;
  const asksForOne = wanted.session_id != null || words !== null;
  if (asksForOne && !isNamed && session.sessionId !== wanted.session_id) return false;
  if (wanted.project_ids != null && !wanted.project_ids.includes(session.projectId ?? '')) return false;
  if (Object.entries(wanted.user_metadata).some(([key, value]) => session.userMetadata?.[key] !== value)) return false;
  return wanted.statuses?.some((status) => hasStatus(session, status)) ?? true;
}

function hasStatus({ finished }: Session, status: z.infer<typeof statusQuery>): boolean {
  if (status.type === 'active') return finished === null;
  return status.type === 'client_finished' && finished !== null && (status.reasons?.includes(finished.reason) ?? true);
}

/** Newest first, so what comes next is older, or of the same moment with a lesser id. */
function isBehind({ createdAt, sessionId }: Session, cursor: Search['cursor'] | null): boolean {
  if (cursor == null) return true;
  const difference = Date.parse(createdAt) - cursor.last_created_at.getTime();
  return difference < 0 || (difference === 0 && sessionId < cursor.last_session_id);
}

function summary({ runs }: Service, session: Session): Record<string, unknown> {
  const { sessionId, createdAt, finished, projectId, displayName, userMetadata } = session;
  const checkpoints = runs.ofSession(sessionId).flatMap((run) => run.checkpoints.named());
  return {
    session_id: sessionId,
    created_at: createdAt,
    owner: 'local',
    project_id: projectId ?? '',
    status: finished === null ? { type: 'active' } : { type: 'client_finished', reason: { type: finished.reason } },
    checkpoints_count: checkpoints.length,
    display_name: displayName,
    user_metadata: userMetadata,
    checkpoint_storage_bytes: checkpoints.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}
