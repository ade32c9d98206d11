import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { decodeForwardBackwardRequest, encodeForwardBackwardOutput, encodeSampleResponse, type SampleResponse } from '../wire/index.ts';

/** For this client's tests: a server at a real socket that speaks the protocol, with answers that a test may script. */

export type Reply =
  /** Looks at the request first. */
  | ((request: SeenRequest) => Reply)
  | {
      readonly status?: number;
      readonly json?: unknown;
      readonly text?: string;
      readonly protobuf?: Uint8Array;
      readonly headers?: Record<string, string>;
      readonly delayMs?: number;
    }
  /** Never answers. */
  | 'hang'
  /** Closes the connection without an answer. */
  | 'drop';

export type SeenRequest = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly json: Record<string, unknown>;
  /** The client's end of the connection it came over. */
  readonly connection: number | undefined;
};

export const ONE_SAMPLE: SampleResponse = {
  sequences: [{ tokens: Int32Array.of(7, 10), logprobs: Float32Array.of(-0.5, -0.25), stopReason: 'stop', topk: null }],
  promptLogprobs: null,
  topkPromptLogprobs: null,
  promptCacheHitTokens: 2,
  targetPromptLogprobs: null,
  promptAltTokens: null,
};

/** The result of a sample: the usual one but for these fields. */
export function sampleReply(fields: Partial<SampleResponse> = {}): Reply {
  return { protobuf: encodeSampleResponse({ ...ONE_SAMPLE, ...fields }) };
}

export class FakeService implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  /** What each sample comes to. */
  sampled: Reply = sampleReply();
  readonly #scripts = new Map<string, Reply[]>();
  readonly #usualReplies = new Map<string, Reply>();
  readonly #futures = new Map<string, Reply>();
  readonly #server: Server;
  #counter = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const bytes = Buffer.concat(parts);
        const isJson = request.headers['content-type'] === 'application/json';
        const path = (request.url ?? '').replace('/api/v1/', '');
        const seen = {
          path,
          headers: request.headers,
          bytes,
          json: isJson ? JSON.parse(bytes.toString()) : {},
          connection: request.socket.remotePort,
        };
        this.seen.push(seen);
        answer(response, this.#scripts.get(path)?.shift() ?? this.#usualReplies.get(path) ?? this.#usual(seen), seen);
      });
    });
  }

  static async start(port = 0): Promise<FakeService> {
    const service = new FakeService();
    await new Promise<void>((resolve) => service.#server.listen(port, '127.0.0.1', resolve));
    return service;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The next answers of a path, before the usual ones. */
  script(path: string, ...replies: Reply[]): void {
    this.#scripts.set(path, [...(this.#scripts.get(path) ?? []), ...replies]);
  }

  /** What a path answers from here on, after what is scripted. */
  usually(path: string, reply: Reply): void {
    this.#usualReplies.set(path, reply);
  }

  to(path: string): SeenRequest[] {
    return this.seen.filter((request) => request.path === path);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #promise(result: Reply): Reply {
    const id = `req-${this.#counter++}`;
    this.#futures.set(id, result);
    return { json: { request_id: id } };
  }

  #usual({ path, json, bytes, headers }: SeenRequest): Reply {
    switch (path) {
      case 'client/config':
        return { json: {} };
      case 'create_session':
        return { json: { session_id: 'sess', type: 'create_session' } };
      case 'session_heartbeat':
        return { json: { type: 'session_heartbeat' } };
      case 'create_sampling_session':
        return { json: { sampling_session_id: `sess:sample:${json.sampling_session_seq_id}` } };
      case 'asample':
        return this.#promise(this.sampled);
      case 'create_model':
        return this.#promise({ json: { model_id: `sess:train:${json.model_seq_id}` } });
      case 'optim_step':
        return this.#promise({ json: { metrics: { 'grad_norm:max': 0.5 } } });
      case 'save_weights':
        return this.#promise({ json: { path: `tinker://run/weights/${json.path}` } });
      case 'save_weights_for_sampler':
        return this.#promise({ json: { path: `tinker://run/sampler_weights/${json.path}` } });
      case 'load_weights':
        return this.#promise({ json: { model_id: json.model_id ?? `sess:train:${json.model_seq_id}` } });
      case 'forward_backward':
        return headers['content-type'] === 'application/x-protobuf' ? this.#promise({ protobuf: lossResult(bytes) }) : { status: 415 };
      case 'retrieve_future':
        return this.#futures.get(String(json.request_id)) ?? { status: 404, json: { detail: 'Future not found' } };
      default:
        return { status: 404, json: { detail: 'Not Found' } };
    }
  }
}

/** Each datum's log-probabilities are the first token of its input; the loss is the chunk's seq_id. */
function lossResult(bytes: Uint8Array): Uint8Array {
  const { datums, seqId } = decodeForwardBackwardRequest(bytes);
  const outputs = datums.map(({ modelInput: [chunk], lossFnInputs }) => ({
    logprobs: new Float32Array(lossFnInputs.target_tokens?.values.length ?? 0).fill(
      chunk?.type === 'encoded_text' ? (chunk.tokens[0] ?? 0) : 0,
    ),
  }));
  return encodeForwardBackwardOutput({ lossFnOutputType: 'ArrayRecord', lossFnOutputs: outputs, metrics: { 'loss:sum': seqId } });
}

function answer(response: ServerResponse, reply: Reply, request: SeenRequest): void {
  if (typeof reply === 'function') {
    answer(response, reply(request), request);
    return;
  }
  if (reply === 'hang') return;
  if (reply === 'drop') {
    response.socket?.destroy();
    return;
  }
  const { status = 200, json, text = json === undefined ? '' : JSON.stringify(json), protobuf, headers = {}, delayMs } = reply;
  if (delayMs !== undefined) {
    const { delayMs: _, ...prompt } = reply;
    setTimeout(() => answer(response, prompt, request), delayMs);
    return;
  }
  response.writeHead(status, { ...headers, 'content-type': protobuf === undefined ? 'application/json' : 'application/x-protobuf' });
  response.end(protobuf ?? text);
}
