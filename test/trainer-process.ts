import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  DatumSchema,
  DType,
  ForwardBackwardOutputSchema,
  ForwardBackwardRequestSchema,
  SampleResponseSchema,
} from '../services/tinker/wire/tinker_public_pb.ts';
import { initialWeights, TINY_SHAPE, weightsToBytes } from '../trainer/engine/index.ts';

export const KEY = 'tml-test';

/** Weights that were never trained: enough for everything that is not about learning. Returns their folder. */
export function untrainedWeights(): string {
  const folder = mkdtempSync(join(tmpdir(), 'weights-'));
  writeFileSync(join(folder, 'tiny-teacher.safetensors'), weightsToBytes(initialWeights(TINY_SHAPE, 1)));
  writeFileSync(join(folder, 'tiny-student.safetensors'), weightsToBytes(initialWeights(TINY_SHAPE, 2)));
  return folder;
}

export type Trainer = { readonly url: string; readonly process: ChildProcess; readonly kill: (signal: NodeJS.Signals) => Promise<void> };

export type TrainerFlags = {
  readonly state: string;
  readonly weights?: string;
  readonly port?: number;
  readonly apiKey?: string;
  /** A fault plan's file, or `-` for a plan that is put at run time. */
  readonly faults?: string;
  /** Variables besides our own. */
  readonly env?: Readonly<Record<string, string>>;
};

function launch({ state, weights, port = 0, apiKey, faults, env = {} }: TrainerFlags): ChildProcess {
  const script = fileURLToPath(new URL('../trainer/main.ts', import.meta.url));
  const flags = ['--port', String(port), '--state', state];
  if (weights !== undefined) flags.push('--weights', weights);
  if (apiKey !== undefined) flags.push('--api-key', apiKey);
  if (faults !== undefined) flags.push('--faults', faults);
  return spawn(process.execPath, [script, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
}

/** Starts the real service and waits until it says that it serves. */
export async function startTrainerProcess(flags: TrainerFlags): Promise<Trainer> {
  const child = launch(flags);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.stderr?.pipe(process.stderr);
  const ready = new Promise<string>((resolve, reject) => {
    if (child.stdout !== null) createInterface(child.stdout).once('line', resolve);
    child.once('exit', (code) => reject(new Error(`the trainer ended with code ${code} before it was ready`)));
  });
  const { url } = JSON.parse(await ready) as { url: string };
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  return { url, process: child, kill };
}

/** Runs the service to its end, for starts that must fail. */
export async function runTrainerProcess(flags: TrainerFlags): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const child = launch(flags);
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  return { code, stderr };
}

/** Starts the service and kills it so many ms later, ready or not. */
export async function killTrainerAtStart(flags: TrainerFlags, afterMs: number): Promise<void> {
  const child = launch(flags);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  setTimeout(() => child.kill('SIGKILL'), afterMs);
  await exited;
}

/** Plain calls over the wire, without a client's retries. */
export class WireClient {
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string = KEY) {
    this.#url = url;
    this.#key = key;
  }

  async send(method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const headers = { 'X-API-Key': this.#key, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const response = await fetch(`${this.#url}/api/v1/${path}`, init);
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
  }

  async post(path: string, body: unknown): Promise<Record<string, unknown>> {
    const answer = await this.send('POST', path, body);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Polls until the future has ended; bytes of a binary result, or the JSON. */
  async retrieve(requestId: unknown): Promise<Uint8Array | Record<string, unknown>> {
    for (;;) {
      const response = await fetch(`${this.#url}/api/v1/retrieve_future`, {
        method: 'POST',
        headers: { 'X-API-Key': this.#key, 'Content-Type': 'application/json', Accept: 'application/x-protobuf' },
        body: JSON.stringify({ request_id: requestId, allow_metadata_only: true }),
      });
      if (response.headers.get('content-type') === 'application/x-protobuf') return new Uint8Array(await response.arrayBuffer());
      const body = (await response.json()) as Record<string, unknown>;
      if (response.status !== 200) throw new Error(`retrieve_future: ${response.status} ${JSON.stringify(body)}`);
      if (body.type !== 'try_again') return body;
    }
  }

  async call(path: string, body: unknown): Promise<Uint8Array | Record<string, unknown>> {
    return this.retrieve((await this.post(path, body)).request_id);
  }

  /** Submits a forward_backward; returns its request id. */
  async forwardBackward(
    modelId: string,
    seqId: number,
    data: readonly TestDatum[],
    loss = 'cross_entropy',
    forwardOnly = false,
  ): Promise<string> {
    const response = await fetch(`${this.#url}/api/v1/forward_backward`, {
      method: 'POST',
      headers: { 'X-API-Key': this.#key, 'Content-Type': 'application/x-protobuf' },
      body: encodeRequest(modelId, seqId, data, loss, forwardOnly),
    });
    const body = (await response.json()) as { request_id: string };
    if (response.status !== 200) throw new Error(`forward_backward: ${response.status} ${JSON.stringify(body)}`);
    return body.request_id;
  }
}

export type TestDatum = {
  readonly tokens: readonly number[];
  readonly targets: readonly number[];
  readonly floats: Readonly<Record<string, readonly number[]>>;
};

/** Next-token rows of a text, weight 1 everywhere. */
export function textDatum(text: string): TestDatum {
  const ids = [...text].map((char) => char.charCodeAt(0));
  return { tokens: ids.slice(0, -1), targets: ids.slice(1), floats: { weights: ids.slice(1).map(() => 1) } };
}

function encodeRequest(
  modelId: string,
  seqId: number,
  data: readonly TestDatum[],
  lossFn: string,
  forwardOnly: boolean,
): Uint8Array<ArrayBuffer> {
  const request = create(ForwardBackwardRequestSchema, {
    modelId,
    seqId,
    lossFn,
    forwardOnly,
    data: data.map(({ tokens, targets, floats }) =>
      create(DatumSchema, {
        modelInput: [{ chunk: { case: 'encodedText', value: { tokens: bytes(Int32Array.from(tokens)) } } }],
        lossFnInputs: {
          target_tokens: tensor(BigInt64Array.from(targets.map(BigInt)), DType.INT64),
          ...Object.fromEntries(Object.entries(floats).map(([key, values]) => [key, tensor(Float32Array.from(values), DType.FLOAT32)])),
        },
      }),
    ),
  });
  return toBinary(ForwardBackwardRequestSchema, request);
}

const bytes = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array => new Uint8Array(array.buffer);
const tensor = (array: Float32Array | BigInt64Array, dtype: DType) => ({
  data: { case: 'dense' as const, value: bytes(array) },
  dtype,
  shape: [BigInt(array.length)],
});

export const decodeSample = (result: Uint8Array | Record<string, unknown>) => {
  if (!(result instanceof Uint8Array)) throw new Error(`the sample failed: ${JSON.stringify(result)}`);
  const { sequences, promptLogprobs } = fromBinary(SampleResponseSchema, result);
  return {
    sequences: sequences.map(({ tokens, logprobs, stopReason }) => ({
      tokens: [...new Int32Array(tokens.slice().buffer)],
      logprobs: [...new Float32Array((logprobs ?? new Uint8Array()).slice().buffer)],
      stopReason,
    })),
    promptLogprobs: promptLogprobs === undefined ? null : [...new Float32Array(promptLogprobs.slice().buffer)],
  };
};

export const decodeLoss = (result: Uint8Array | Record<string, unknown>) => {
  if (!(result instanceof Uint8Array)) throw new Error(`forward_backward failed: ${JSON.stringify(result)}`);
  return fromBinary(ForwardBackwardOutputSchema, result);
};
