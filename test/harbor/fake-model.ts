import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ChatRequest = {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly max_tokens: number;
  readonly temperature: number;
};
/** What the model says on its turn (from 0); an object is an HTTP error; null is no answer, ever. */
export type Script = (turn: number, request: ChatRequest) => string | { status: number; body: unknown } | null;

/** A chat-completions server whose "models" are scripts: a request's model name chooses one. */
export class FakeModel implements AsyncDisposable {
  readonly apiBase: string;
  /** Every request of a model, in order. */
  readonly requests = new Map<string, ChatRequest[]>();
  readonly keys = new Set<string>();
  #server: Server;
  #scripts = new Map<string, Script>();

  private constructor(server: Server) {
    this.#server = server;
    this.apiBase = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  static async start(): Promise<FakeModel> {
    const server = createServer((request, response) => {
      fake.#answer(request).then(
        (answer) => {
          if (answer === null) return;
          response.writeHead(answer.status, { 'content-type': 'application/json' });
          response.end(JSON.stringify(answer.body));
        },
        () => response.destroy(),
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const fake = new FakeModel(server);
    return fake;
  }

  /** Adds a model; a list of lines is said turn by turn, and `done` after them. Returns its name. */
  model(script: Script | readonly string[]): string {
    const name = `scripted-${this.#scripts.size}`;
    this.#scripts.set(name, typeof script === 'function' ? script : (turn) => script[turn] ?? 'done');
    this.requests.set(name, []);
    return name;
  }

  /** What the commands of a model's only trial printed, as the agent told it. */
  observations(name: string): string[] {
    const last = this.requests.get(name)?.at(-1);
    return (last?.messages ?? [])
      .filter((message) => message.role === 'user')
      .map((message) => message.content)
      .slice(1);
  }

  async #answer(request: IncomingMessage): Promise<{ status: number; body: unknown } | null> {
    const body = (await new Response(request as unknown as ReadableStream).json()) as ChatRequest;
    this.keys.add(request.headers.authorization ?? '');
    this.requests.get(body.model)?.push(body);
    const turn = body.messages.filter((message) => message.role === 'assistant').length;
    const said = this.#scripts.get(body.model)?.(turn, body) ?? null;
    if (said === null || typeof said === 'object') return said;
    return { status: 200, body: { choices: [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: 'stop' }] } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
