import { createAdaptorServer } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { type AnswerContext, chatCompletion } from './answer.ts';
import { completionEvents, event } from './answer-stream.ts';
import { bodyText } from './body.ts';
import type { Completion } from './completion.ts';
import { GatewayError, trialEnded } from './errors.ts';
import type { TrialSession } from './session.ts';
import { type ChatRequest, parseChatRequest } from './wire.ts';

const BEARER = /^Bearer +(\S+) *$/i;

/** Finds a trial by its id in the URL; `ended` tells one that was here from one that never was. */
export type TrialLookup = (trialId: string) => TrialSession | 'ended' | undefined;

export type ServerLimits = {
  readonly maxBodyBytes: number;
  readonly pingMs: number;
  readonly maxConnections: number;
  readonly slowRequestMs: number;
  /** A path that a proxy leaves before ours, e.g. `/worker-7`; empty for none. */
  readonly basePath: string;
};

/** The routes, on web-standard types. Every failure is an OpenAI-shaped error body. */
export function gatewayApp(lookup: TrialLookup, { maxBodyBytes, pingMs, basePath }: ServerLimits): Hono {
  const app = new Hono();
  for (const base of new Set(['', basePath])) {
    app.post(`${base}/t/:trial/v1/chat/completions`, async (c) => {
      const session = authorised(c, lookup); // before the body: a stranger's is never read
      const request = parseChatRequest(await bodyText(c, maxBodyBytes));
      const sampling = session.complete(request, c.req.raw.signal);
      if (request.stream) return streamed(sampling, request, session, pingMs);
      return json(c, chatCompletion(await sampling, request, context(session)));
    });
    app.get(`${base}/t/:trial/v1/models`, (c) => {
      const { modelName, contextLimitTokens } = authorised(c, lookup).options;
      return c.json({
        object: 'list',
        data: [{ id: modelName, object: 'model', created: 0, owned_by: 'stillroom', max_model_len: contextLimitTokens }],
      });
    });
  }
  app.notFound((c) => answerError(c, notFound(c)));
  app.onError((cause, c) =>
    answerError(c, cause instanceof GatewayError ? cause : new GatewayError('internal_error', 'The gateway failed to answer.')),
  );
  return app;
}

export function nodeServer(app: Hono, { maxConnections, slowRequestMs }: ServerLimits) {
  const server = createAdaptorServer({
    fetch: app.fetch,
    serverOptions: {
      // Longer than any client keeps an idle connection, so that it is never closed under a request that was just sent.
      keepAliveTimeout: 120_000,
      // Whoever sends slowly is cut off: a request's head, and the whole of it.
      headersTimeout: Math.ceil(slowRequestMs / 8),
      requestTimeout: slowRequestMs,
      connectionsCheckingInterval: Math.ceil(slowRequestMs / 16),
    },
  });
  return Object.assign(server, { maxConnections });
}

function authorised(c: Context, lookup: TrialLookup): TrialSession {
  const session = lookup(c.req.param('trial') ?? '');
  if (session === 'ended') throw trialEnded();
  if (!session) throw new GatewayError('unknown_trial', 'There is no such trial on this gateway.');
  const key = BEARER.exec(c.req.header('authorization') ?? '')?.[1];
  if (!key || !session.accepts(key))
    throw new GatewayError('invalid_api_key', "The key is not this trial's. Send the trial's own key as `Authorization: Bearer <key>`.");
  return session;
}

/**
 * Errors that come quickly keep their HTTP status. Once a client has waited `pingMs` the stream is opened and fed comments, and
 * a later error becomes an event in it.
 */
async function streamed(sampling: Promise<Completion>, request: ChatRequest, session: TrialSession, pingMs: number): Promise<Response> {
  const early = await Promise.race([sampling, pause(pingMs)]);
  const stream = ReadableStream.from(events(early, sampling, request, session, pingMs));
  return new Response(stream, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' } });
}

async function* events(
  early: Completion | undefined,
  sampling: Promise<Completion>,
  request: ChatRequest,
  session: TrialSession,
  pingMs: number,
) {
  try {
    let completion = early;
    while (!completion) {
      yield Buffer.from(': ping\n\n');
      completion = await Promise.race([sampling, pause(pingMs)]);
    }
    yield* completionEvents(completion, request, context(session));
  } catch (cause) {
    if (!(cause instanceof GatewayError)) throw cause;
    yield event(cause.body());
  }
}

function context({ options: { modelName, renderer } }: TrialSession): AnswerContext {
  return { id: `chatcmpl-${crypto.randomUUID()}`, createdS: Math.floor(Date.now() / 1000), modelName, renderer };
}

function notFound({ req }: Context): GatewayError {
  const offered = 'Agents use POST /t/<trial>/v1/chat/completions and GET /t/<trial>/v1/models.';
  return new GatewayError('not_found', `There is no ${req.method} ${req.path} here. ${offered}`);
}

function json(c: Context, bytes: Uint8Array<ArrayBuffer>): Response {
  return c.body(bytes, 200, { 'content-type': 'application/json' });
}

function answerError(c: Context, error: GatewayError): Response {
  return c.json(error.body(), error.status, { ...error.headers });
}

function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined).unref());
}
