import type { Http2Bindings, HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { HttpFailure } from '../failures.ts';
import { MAX_BODY_BYTES } from './bodies.ts';
import { errorAnswer } from './error-answer.ts';

/** Which keys are let in: one key, or any of the right form. */
export type KeyRule = { readonly onlyKey: string } | { readonly prefix: 'tml-' };

/** What the HTTP server knows of a request. */
export type Connection = HttpBindings | Http2Bindings;
type App = Hono<{ Bindings: Connection }>;
export type Handle = (request: Request, connection: Connection) => Response | Promise<Response>;

/** What stands before the service: only requests with a key get through, with bodies of a bounded size, and nothing of others is read. */
export function gated(keys: KeyRule, handle: Handle): App {
  const app: App = new Hono();
  app.use(async (c, next) => {
    if (c.req.path !== '/api/v1/healthz' && !isAllowed(keys, c.req.header('x-api-key'))) {
      throw new HttpFailure(401, refusal(keys));
    }
    await next();
  });
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: tooLarge }));
  app.all('*', (c) => handle(c.req.raw, c.env));
  app.onError(errorAnswer);
  return app;
}

function tooLarge(): never {
  throw new HttpFailure(413, `the body exceeds ${MAX_BODY_BYTES} bytes`);
}

function refusal(keys: KeyRule): string {
  if ('onlyKey' in keys) return 'this service takes one key only, and X-API-Key is not it';
  return `X-API-Key: missing or wrong; this service takes keys that start with ${keys.prefix}`;
}

function isAllowed(keys: KeyRule, key: string | undefined): boolean {
  if (key === undefined) return false;
  return 'onlyKey' in keys ? key === keys.onlyKey : key.startsWith(keys.prefix);
}
