import { Hono } from 'hono';
import { z } from 'zod';
import { HttpFailure } from '../failures.ts';
import type { Service } from '../service.ts';
import { metadata, readJson } from './bodies.ts';

const createSession = z.object({
  tags: z.array(z.string()).default([]),
  user_metadata: metadata,
  display_name: z.string().nullish(),
  project_id: z.string().nullish(),
});
const heartbeat = z.object({ session_id: z.string() });
const finish = z.object({ reason: z.object({ type: z.string() }) });

/** Client start, sessions, and what a client asks about the service itself. */
export function sessionRoutes(service: Service): Hono {
  const { sessions } = service;
  return (
    new Hono()
      // Keys are used as they are, and nothing else differs from the protocol's defaults.
      .post('/client/config', (c) => c.json({ pjwt_auth_enabled: false }))
      .post('/client/dynamic_config', (c) => c.json({ sample_cancel_enabled: true }))
      .post('/create_session', async (c) => {
        const { tags, user_metadata, display_name, project_id } = await readJson(c, createSession);
        const settings = { tags, userMetadata: user_metadata ?? null, displayName: display_name ?? null, projectId: project_id ?? null };
        return c.json({ type: 'create_session', session_id: sessions.create(settings) });
      })
      .post('/session_heartbeat', async (c) => {
        const { session_id: sessionId } = await readJson(c, heartbeat);
        sessions.touch(sessionId);
        // 410 stops a client's heartbeat: its session is over.
        if (sessions.get(sessionId).finished !== null) throw new HttpFailure(410, `session '${sessionId}' is finished`);
        return c.json({ type: 'session_heartbeat' });
      })
      .post('/sessions/:id/finish', async (c) => {
        const sessionId = c.req.param('id');
        const { reason } = await readJson(c, finish);
        service.finishSession(sessionId, reason.type);
        return c.body(null, 204);
      })
      .post('/telemetry', (c) => c.json({ status: 'accepted' }))
      .get('/healthz', (c) => c.json({ status: 'ok' }))
      .get('/get_server_capabilities', (c) =>
        c.json({
          supported_models: service.baseModels.map((name) => ({
            model_name: name,
            max_context_length: service.context,
            trainable: true,
            sampleable: true,
          })),
        }),
      )
  );
}
