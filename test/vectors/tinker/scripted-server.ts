import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

/** One recorded HTTP exchange, as the vector files hold it. */
export const exchangeSchema = z.looseObject({
  method: z.string(),
  /** With `/api/v1/`. */
  path: z.string(),
  query: z.string().default(''),
  req_headers: z.record(z.string(), z.string()).default({}),
  /** The JSON body, or `{base64}` for binary ones. */
  req: z.unknown(),
  status: z.number(),
  res_type: z.string().nullish(),
  res: z.unknown(),
  res_headers: z.record(z.string(), z.string()).default({}),
  /** When the request came, on the recorder's clock. */
  t_ms: z.number().optional(),
});
export type Exchange = z.infer<typeof exchangeSchema>;

export type SeenRequest = {
  readonly method: string;
  readonly path: string;
  /** Without the `?`. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when the body is empty or no JSON. */
  readonly json: unknown;
  readonly bytes: Buffer;
  /** When it came, ms on the script's clock. */
  readonly atMs: number;
};

export type ScriptOptions = {
  /** JSON answers to `POST /api/v1/...` that the recording leaves out, e.g. `{'/api/v1/client/config': {}}`. They are recorded like all others. */
  readonly usual?: Readonly<Record<string, unknown>>;
  /** After the last recorded answer of a path it is given again (abridged recordings); otherwise 404. */
  readonly repeatLast?: boolean;
  /** The time that requests are stamped with. Default: `performance.now()`. */
  readonly nowMs?: () => number;
};

export type ScriptedServer = AsyncDisposable & {
  readonly url: string;
  /** In order of arrival, without heartbeats. */
  readonly seen: readonly SeenRequest[];
  /** Recorded exchanges that nobody asked for yet. */
  remaining(): Exchange[];
  stop(): Promise<void>;
};

const HEARTBEAT = '/api/v1/session_heartbeat';

/** Replays recorded answers from a real socket: those of one method and path in their order, whatever the other paths do. */
export async function startScriptedServer(exchanges: readonly Exchange[], options: ScriptOptions = {}): Promise<ScriptedServer> {
  const queues = Map.groupBy(exchanges, ({ method, path }) => `${method} ${path}`);
  const seen: SeenRequest[] = [];
  const nowMs = options.nowMs ?? (() => performance.now());

  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const [path = '', query = ''] = (request.url ?? '').split('?');
      const method = request.method ?? '';
      if (path === HEARTBEAT && !queues.has(`POST ${HEARTBEAT}`)) return reply(response, 200, { type: 'session_heartbeat' });
      const bytes = Buffer.concat(parts);
      seen.push({ method, path, query, headers: request.headers, json: jsonOf(bytes), bytes, atMs: nowMs() });
      const queue = queues.get(`${method} ${path}`) ?? [];
      const next = options.repeatLast && queue.length === 1 ? queue[0] : queue.shift();
      if (next !== undefined) return replay(response, next);
      const usual = options.usual?.[path];
      if (usual === undefined) return reply(response, 404, { detail: `nothing recorded for ${method} ${path}` });
      return reply(response, 200, usual);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    remaining: () => [...queues.values()].flat(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function replay(response: ServerResponse, { status, res, res_type, res_headers }: Exchange): void {
  const type = res_type ?? 'application/json';
  const isBinary = typeof res === 'object' && res !== null && 'base64' in res && typeof res.base64 === 'string';
  const json = () => (res === undefined || res === null ? '' : JSON.stringify(res));
  send(response, status, type, res_headers, isBinary ? Buffer.from(String(res.base64), 'base64') : json());
}

function reply(response: ServerResponse, status: number, json: unknown): void {
  send(response, status, 'application/json', {}, JSON.stringify(json));
}

function send(response: ServerResponse, status: number, type: string, headers: Record<string, string>, body: string | Buffer): void {
  const mayHaveBody = status !== 204 && status !== 304;
  response.writeHead(status, { ...headers, ...(mayHaveBody ? { 'content-type': type } : {}) });
  response.end(mayHaveBody ? body : '');
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
