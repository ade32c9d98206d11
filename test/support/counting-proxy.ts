import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands before an HTTP server, passes every request on as a whole, and counts them by path. */
export class CountingProxy implements AsyncDisposable {
  readonly url: string;
  /** Where requests go to; set before the first one comes. */
  target = '';
  readonly paths: string[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<CountingProxy> {
    const server = createServer(async (request, response) => {
      const { method = 'GET', url = '/', headers } = request;
      proxy.paths.push(url);
      try {
        const body = method === 'GET' ? null : Buffer.concat(await request.toArray());
        const { authorization = '' } = headers;
        const answer = await fetch(proxy.target + url, { method, body, headers: { authorization, 'content-type': 'application/json' } });
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
        response.end(Buffer.from(await answer.arrayBuffer()));
      } catch (error) {
        response.destroy(error as Error);
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new CountingProxy(server);
    return proxy;
  }

  /** Requests whose path holds this text. */
  count(text: string): number {
    return this.paths.filter((path) => path.includes(text)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
