import { createAdaptorServer } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { type AnswerContext, chatCompletion, completionEvents, event } from './answer.ts';
import type { Completion } from './completion.ts';
import { GatewayError } from './errors.ts';
import { type TrialSession, trialEnded } from './session.ts';
import { type ChatRequest, parseChatRequest } from './wire.ts';

const BEARER = /^Bearer +(\S+) *$/i;

/** Finds a trial by its id in the URL; `ended` tells one that was here from one that never was. */
export type TrialLookup = (trialId: string) => TrialSession | 'ended' | undefined;

/** The routes, on web-standard types. Every failure is an OpenAI-shaped error body. */
export function gatewayApp(lookup: TrialLookup, limits: { readonly maxBodyBytes: number; readonly pingMs: number }): Hono {
  const app = new Hono();
  app.post('/t/:trial/v1/chat/completions', async (c) => {
    const session = authorised(c, lookup);
    const request = parseChatRequest(await bodyText(c, limits.maxBodyBytes));
    const sampling = session.complete(request, c.req.raw.signal);
    if (request.stream) return streamed(sampling, request, session, limits.pingMs);
    return c.json(chatCompletion(await sampling, request, context(session)));
  });
  app.get('/t/:trial/v1/models', (c) => {
    const { modelName, contextLimitTokens } = authorised(c, lookup).options;
    return c.json({
      object: 'list',
      data: [{ id: modelName, object: 'model', created: 0, owned_by: 'stillroom', max_model_len: contextLimitTokens }],
    });
  });
  app.notFound((c) => answerError(c, new GatewayError(404, 'not_found', `There is no ${c.req.method} ${c.req.path} here.`)));
  app.onError((cause, c) =>
    answerError(c, cause instanceof GatewayError ? cause : new GatewayError(500, 'internal_error', 'The gateway failed to answer.')),
  );
  return app;
}

export function nodeServer(app: Hono) {
  return createAdaptorServer({
    fetch: app.fetch,
    // Longer than any client keeps an idle connection, so that it is never closed under a request that was just sent.
    serverOptions: { keepAliveTimeout: 120_000 },
  });
}

function authorised(c: Context, lookup: TrialLookup): TrialSession {
  const session = lookup(c.req.param('trial') ?? '');
  if (session === 'ended') throw trialEnded();
  if (!session) throw new GatewayError(404, 'unknown_trial', 'There is no such trial on this gateway.');
  const key = BEARER.exec(c.req.header('authorization') ?? '')?.[1];
  if (!key || !session.accepts(key))
    throw new GatewayError(
      401,
      'invalid_api_key',
      "The key is not this trial's. Send the trial's own key as `Authorization: Bearer <key>`.",
    );
  return session;
}

/**
 * The body, if it is not larger than `maxBytes`. A declared length is enforced by the HTTP parser, so only bodies without one are
 * counted as they come (hono's own limit counts always, which costs more than the rest of a call).
 */
async function bodyText(c: Context, maxBytes: number): Promise<string> {
  const tooLarge = () => new GatewayError(413, 'request_too_large', `The request body is larger than ${maxBytes} bytes.`);
  const declared = c.req.header('content-length');
  if (Number(declared ?? 0) > maxBytes) throw tooLarge();
  if (declared !== undefined) return c.req.text();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of c.req.raw.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/**
 * Errors that come quickly keep their HTTP status. Once a client has waited `pingMs` the stream is opened and fed comments, and
 * a later error becomes an event in it.
 */
async function streamed(sampling: Promise<Completion>, request: ChatRequest, session: TrialSession, pingMs: number): Promise<Response> {
  const early = await Promise.race([sampling, pause(pingMs)]);
  const stream = ReadableStream.from(events(early, sampling, request, session, pingMs)).pipeThrough(new TextEncoderStream());
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
      yield ': ping\n\n';
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

function answerError(c: Context, error: GatewayError): Response {
  return c.json(error.body(), error.status, { ...error.headers });
}

function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined).unref());
}
