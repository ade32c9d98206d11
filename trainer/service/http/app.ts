import { Hono } from 'hono';
import type { Service } from '../service.ts';
import { errorAnswer } from './error-answer.ts';
import { futureRoutes } from './future-routes.ts';
import { restRoutes } from './rest-routes.ts';
import { samplingRoutes } from './sampling-routes.ts';
import { sessionListRoutes } from './session-list-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { trainingRoutes } from './training-routes.ts';

/** The Tinker protocol over HTTP, behind the gate that asks for keys. Every answer that is no success is `{"detail": what is wrong}`. */
export function createApp(service: Service): Hono {
  const app = new Hono();
  for (const routes of [samplingRoutes, futureRoutes, trainingRoutes, sessionRoutes, sessionListRoutes, restRoutes]) {
    app.route('/api/v1', routes(service));
  }
  app.notFound((c) => c.json({ detail: `${c.req.method} ${c.req.path} is not part of this service` }, 404));
  app.onError(errorAnswer);
  return app;
}
