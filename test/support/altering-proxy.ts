import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeSampleResponse, encodeSampleResponse, type SampleResponse } from '../../services/tinker/wire/index.ts';

/** How the service behaves when it is broken on purpose; what is absent passes through untouched. */
export type Faults = {
  /** Changes the answer to one sampling or scoring call of a base model, or of weights by their path. Calls are counted from 0, over all models. */
  readonly sample?: (answer: SampleResponse, call: { readonly model: string; readonly index: number }) => SampleResponse;
  /** Changes the list of models the service says it has. */
  readonly models?: (models: readonly Record<string, unknown>[]) => readonly Record<string, unknown>[];
  /** Answers a request itself with this status; undefined lets it pass. */
  readonly refuse?: (path: string) => number | undefined;
  /** Leaves a request without an answer. */
  readonly swallow?: (path: string) => boolean;
  /** Changes what one sampling or scoring call asks for, before the service hears it. */
  readonly ask?: (body: Record<string, unknown>) => Record<string, unknown>;
  /** Holds a sampling or scoring call back for so many milliseconds. */
  readonly delayMs?: (body: Record<string, unknown>) => number;
};

/** One call as the client made it, and what it was answered. */
export type Exchange = { readonly path: string; readonly body: Buffer; readonly answer: Uint8Array };

/** A Tinker service that is the real one but for its faults: it speaks the protocol at the socket. */
export class AlteringProxy implements AsyncDisposable {
  readonly url: string;
  faults: Faults = {};
  /** Told of every call that was answered well. */
  onExchange: (exchange: Exchange) => void = () => {};
  readonly #server: ReturnType<typeof createServer>;
  readonly #target: string;
  readonly #modelOfSession = new Map<string, string>();
  readonly #callOfRequest = new Map<string, { model: string; index: number }>();

  private constructor(server: ReturnType<typeof createServer>, target: string) {
    this.#server = server;
    this.#target = target;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(target: string): Promise<AlteringProxy> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new AlteringProxy(server, target);
    server.on('request', (request, response) => {
      proxy.#answer(request, response).catch((error: Error) => response.destroy(error));
    });
    return proxy;
  }

  /** Forgets faults and what was counted. */
  heal(): void {
    this.faults = {};
    this.#callOfRequest.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('/').at(-1) ?? '';
    const body = await bytesOf(request);
    if (this.faults.swallow?.(path)) return;
    const refused = this.faults.refuse?.(path);
    if (refused !== undefined) {
      response.writeHead(refused, { 'content-type': 'application/json' }).end(JSON.stringify({ error: 'refused on purpose' }));
      return;
    }
    const asked = path === 'asample' ? await this.#asked(body) : body;
    const { host: _, connection: __, 'content-length': ___, ...headers } = request.headers as Record<string, string>;
    const answer = await fetch(`${this.#target}${request.url}`, {
      method: request.method ?? 'GET',
      headers,
      ...(asked.length > 0 ? { body: new Uint8Array(asked) } : {}),
    });
    const type = answer.headers.get('content-type') ?? 'application/octet-stream';
    const bytes = Buffer.from(await answer.arrayBuffer());
    const altered = answer.ok ? this.#altered(path, body, bytes, type) : bytes;
    if (answer.ok) this.onExchange({ path, body, answer: altered });
    response.writeHead(answer.status, { 'content-type': type }).end(altered);
  }

  async #asked(body: Buffer): Promise<Buffer> {
    const { ask, delayMs } = this.faults;
    if (delayMs !== undefined) await sleep(delayMs(parsed(body)));
    return ask === undefined ? body : Buffer.from(JSON.stringify(ask(parsed(body))));
  }

  #altered(path: string, body: Buffer, answer: Buffer, type: string): Uint8Array {
    if (path === 'retrieve_future') {
      const call = this.#callOfRequest.get(String(parsed(body).request_id));
      if (call === undefined || type.includes('json') || this.faults.sample === undefined) return answer;
      return encodeSampleResponse(this.faults.sample(decodeSampleResponse(answer), call));
    }
    if (path === 'create_sampling_session')
      this.#modelOfSession.set(String(parsed(answer).sampling_session_id), String(parsed(body).base_model ?? parsed(body).model_path));
    if (path === 'asample') {
      const model = this.#modelOfSession.get(String(parsed(body).sampling_session_id)) ?? '';
      this.#callOfRequest.set(String(parsed(answer).request_id), { model, index: this.#callOfRequest.size });
    }
    if (path === 'get_server_capabilities' && this.faults.models !== undefined) {
      const { supported_models, ...rest } = parsed(answer);
      return Buffer.from(JSON.stringify({ ...rest, supported_models: this.faults.models(supported_models as Record<string, unknown>[]) }));
    }
    return answer;
  }
}

const parsed = (bytes: Buffer) => JSON.parse(bytes.toString()) as Record<string, unknown>;

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
