import { Hono } from 'hono';
import { HttpFailure, UserError } from '../failures.ts';
import type { Service } from '../service.ts';
import { MAX_BODY_BYTES } from './bodies.ts';
import { futureRoutes } from './future-routes.ts';
import { restRoutes } from './rest-routes.ts';
import { samplingRoutes } from './sampling-routes.ts';
import { sessionListRoutes } from './session-list-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { trainingRoutes } from './training-routes.ts';

/** Which keys are let in: one key, or any of the right form. */
export type KeyRule = { readonly onlyKey: string } | { readonly prefix: 'tml-' };

/** The Tinker protocol over HTTP. Every answer that is no success is `{"detail": what is wrong}`. */
export function createApp(service: Service, keys: KeyRule): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    if (c.req.path !== '/api/v1/healthz' && !isAllowed(keys, c.req.header('x-api-key'))) {
      throw new HttpFailure(401, 'X-API-Key: missing or wrong; this service takes keys that start with tml-');
    }
    if (Number(c.req.header('content-length') ?? 0) > MAX_BODY_BYTES)
      throw new HttpFailure(413, `the body exceeds ${MAX_BODY_BYTES} bytes`);
    await next();
  });
  for (const routes of [samplingRoutes, futureRoutes, trainingRoutes, sessionRoutes, sessionListRoutes, restRoutes]) {
    app.route('/api/v1', routes(service));
  }
  app.notFound((c) => c.json({ detail: `${c.req.method} ${c.req.path} is not part of this service` }, 404));
  app.onError((error, c) => {
    if (error instanceof HttpFailure) return c.json({ detail: error.message }, error.status);
    if (error instanceof UserError) return c.json({ detail: error.message }, 400);
    process.stderr.write(`${c.req.method} ${c.req.path}: ${error.stack ?? error.message}\n`);
    return c.json({ detail: `internal error: ${error.message}` }, 500);
  });
  return app;
}

function isAllowed(keys: KeyRule, key: string | undefined): boolean {
  if (key === undefined) return false;
  return 'onlyKey' in keys ? key === keys.onlyKey : key.startsWith(keys.prefix);
}
