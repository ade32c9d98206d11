import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { HttpFailure } from '../failures.ts';
import type { FutureState } from '../outcome.ts';
import type { Service } from '../service.ts';
import { readJson } from './bodies.ts';

const byId = z.object({ request_id: z.string() });

/** Waiting for results. A poll is held as long as the result is not there, but well below the clients' timeout of 45 s. */
export function futureRoutes(service: Service): Hono {
  return new Hono()
    .post('/retrieve_future', async (c) => {
      const { request_id: requestId } = await readJson(c, byId);
      return answer(c, requestId, await service.future(requestId, service.longPollMs));
    })
    .post('/cancel_future', async (c) => {
      const { request_id: requestId } = await readJson(c, byId);
      service.sampling.cancel(requestId);
      return c.body(null, 204);
    });
}

function answer(c: Context, requestId: string, future: FutureState): Response {
  switch (future.kind) {
    case 'proto':
      return c.body(future.bytes, 200, { 'Content-Type': 'application/x-protobuf' });
    case 'json':
      return c.json(future.value);
    case 'failed':
      return c.json({ error: future.error, category: future.category });
    case 'pending':
      return c.json({ type: 'try_again', request_id: requestId, queue_state: 'active' });
    case 'gone':
      throw new HttpFailure(410, `request_id: '${requestId}' is no longer remembered; send the call again`);
    case 'unknown':
      throw new HttpFailure(404, `request_id: '${requestId}' is unknown`);
  }
}
