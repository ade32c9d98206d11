import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { zstdDecompressSync } from 'node:zlib';
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardOutput,
  type ReceivedForwardBackwardRequest,
} from '../../../services/tinker/wire/index.ts';

export type Arrival =
  | {
      readonly call: 'forward_backward';
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
      readonly request: ReceivedForwardBackwardRequest;
    }
  | { readonly call: 'optim_step'; readonly seqId: number };

/**
 * The recorder's stub once more, for what must go through a socket: it answers each chunk with loss:sum and peak:max = its
 * seq_id, tokens:mean = its number of datums and an empty record per datum, and keeps what arrived.
 */
export class TrainingServer implements AsyncDisposable {
  readonly arrivals: Arrival[] = [];
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async start(clientConfig: unknown): Promise<TrainingServer> {
    const results: Buffer[] = [];
    const server = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray());
      const path = (request.url ?? '').replace('/api/v1/', '');
      const json = (value: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
      switch (path) {
        case 'client/config':
          return json(clientConfig);
        case 'create_session':
          return json({ session_id: 'sess-1' });
        case 'forward_backward': {
          const raw = request.headers['content-encoding'] === 'zstd' ? zstdDecompressSync(body) : body;
          const received = decodeForwardBackwardRequest(raw);
          arrivals.push({ call: path, headers: request.headers, body, request: received });
          return json({ request_id: String(results.push(Buffer.from(lossResult(received))) - 1) });
        }
        case 'optim_step':
          arrivals.push({ call: path, seqId: JSON.parse(body.toString()).seq_id });
          return json({ request_id: 'optim_step' });
        case 'retrieve_future': {
          const result = results[Number(JSON.parse(body.toString()).request_id)];
          return result === undefined ? json({ metrics: {} }) : response.setHeader('content-type', 'application/x-protobuf').end(result);
        }
        default:
          return response.writeHead(404).end('{}');
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const started = new TrainingServer(server, `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
    const { arrivals } = started;
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function lossResult({ seqId, datums }: ReceivedForwardBackwardRequest): Uint8Array {
  return encodeForwardBackwardOutput({
    lossFnOutputType: 'TorchLossReturn',
    lossFnOutputs: datums.map(() => ({})),
    metrics: { 'loss:sum': seqId, 'tokens:mean': datums.length, 'peak:max': seqId },
  });
}
