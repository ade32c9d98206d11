/**
 * What it costs to write a training batch for the wire. `npm run bench -- tinker`: 64 datums × 40,000 tokens with target tokens,
 * log-probabilities and advantages in one request; our encoder, and the generated code that copies a tensor once per message around it.
 * Each runs in a process of its own, so that its peak memory is its own: first once for the memory, then for the time, the median of 7
 * after 2 to warm up. Exit 1 when our encoder needs memory for more than one copy of each tensor.
 */
import { spawnSync } from 'node:child_process';
import { create, toBinary } from '@bufbuild/protobuf';
import { seededRandom } from '../core/random/seeded.ts';
import { trainingDatum } from '../services/tinker/training/training-datum.ts';
import { compressBody, encodeForwardBackwardRequest, type TensorInput, type TrainingDatum } from '../services/tinker/wire/index.ts';
import { toWireTensor } from '../services/tinker/wire/tensor-values.ts';
import { int32Bytes } from '../services/tinker/wire/tensors.ts';
import { ForwardBackwardRequestSchema } from '../services/tinker/wire/tinker_public_pb.ts';
import { tableOf } from './support/table.ts';
import { collectGarbage } from './support/token-stages.ts';

const DATUMS = 64;
const TOKENS_PER_DATUM = 40_000;
const VOCABULARY = 150_000;
const WARM_UP = 2;
const MEASURED = 7;
/** One copy and what a process allocates besides. */
const MOST_MEMORY_PER_BODY_BYTE = 1.25;

type Measured = {
  readonly bodyBytes: number;
  readonly encodeCpuSeconds: number;
  /** Growth of the peak memory by the first encoding, per byte of the body. */
  readonly memoryPerBodyByte: number;
  readonly zstdSeconds: number;
  readonly zstdBytes: number;
};

const ENCODERS = { 'our encoder': encodeOurs, 'generated code': encodeGenerated } as const;
type Encoder = keyof typeof ENCODERS;

export async function main(): Promise<void> {
  const only = process.argv[2];
  if (only !== undefined) {
    console.log(JSON.stringify(await measure(ENCODERS[only as Encoder])));
    return;
  }
  const ours = inOwnProcess('our encoder');
  const generated = inOwnProcess('generated code');
  print(ours, generated);
  if (ours.memoryPerBodyByte > MOST_MEMORY_PER_BODY_BYTE) process.exitCode = 1;
}

function inOwnProcess(encoder: Encoder): Measured {
  const args = ['--expose-gc', `${import.meta.dirname}/bench.ts`, 'tinker', encoder];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the bench of ${encoder} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as Measured;
}

async function measure(encode: (datums: readonly TrainingDatum[]) => Uint8Array): Promise<Measured> {
  const datums = batch();
  encode(datums.slice(0, 1)); // loads the code
  collectGarbage();
  const before = process.resourceUsage().maxRSS;
  const body = encode(datums);
  const memoryPerBodyByte = ((process.resourceUsage().maxRSS - before) * 1024) / body.byteLength;
  const seconds = Array.from({ length: WARM_UP + MEASURED }, () => {
    collectGarbage();
    const start = process.cpuUsage();
    encode(datums);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1e6;
  }).slice(WARM_UP);
  const start = performance.now();
  const { byteLength: zstdBytes } = await compressBody(body);
  const zstdSeconds = (performance.now() - start) / 1000;
  return { bodyBytes: body.byteLength, encodeCpuSeconds: median(seconds), memoryPerBodyByte, zstdSeconds, zstdBytes };
}

/** Ids and log-probabilities at random, advantages as a trial has them: real text compresses better. */
function batch(): TrainingDatum[] {
  return Array.from({ length: DATUMS }, (_, seed) => {
    const random = seededRandom(BigInt(seed));
    const tokens = Int32Array.from({ length: TOKENS_PER_DATUM + 1 }, () => random.below(VOCABULARY));
    const logprobs = Float32Array.from({ length: TOKENS_PER_DATUM }, () => (-4 * random.below(2 ** 20)) / 2 ** 20);
    const advantages = new Float32Array(TOKENS_PER_DATUM).fill(random.below(2 ** 20) / 2 ** 20);
    return trainingDatum({ modelInput: tokens.subarray(0, -1), targetTokens: tokens.subarray(1), logprobs, advantages });
  });
}

function encodeOurs(datums: readonly TrainingDatum[]): Uint8Array {
  return encodeForwardBackwardRequest({
    modelId: 'model',
    seqId: 1,
    datums,
    lossFn: 'importance_sampling',
    lossFnConfig: {},
    forwardOnly: false,
  });
}

function encodeGenerated(datums: readonly TrainingDatum[]): Uint8Array {
  const data = datums.map(({ modelInput, lossFnInputs }) => ({
    modelInput: [{ chunk: { case: 'encodedText' as const, value: { tokens: int32Bytes(modelInput as Int32Array) } } }],
    lossFnInputs: Object.fromEntries(
      Object.entries<TensorInput>(lossFnInputs)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, input]) => [name, toWireTensor(input)]),
    ),
  }));
  const message = create(ForwardBackwardRequestSchema, { modelId: 'model', seqId: 1, data, lossFn: 'importance_sampling' });
  return toBinary(ForwardBackwardRequestSchema, message);
}

function print(ours: Measured, generated: Measured): void {
  const tokens = DATUMS * TOKENS_PER_DATUM;
  const table = tableOf(
    [`${DATUMS} datums × ${TOKENS_PER_DATUM} tokens`, 'our encoder', 'generated code', 'ours : generated'],
    ['left', 'right', 'right', 'right'],
  );
  const row = (name: string, of: (measured: Measured) => number, digits: number) =>
    table.push([name, of(ours).toFixed(digits), of(generated).toFixed(digits), (of(ours) / of(generated)).toFixed(2)]);
  row('million tokens per CPU-second', ({ encodeCpuSeconds }) => tokens / encodeCpuSeconds / 1e6, 1);
  row('memory per byte of the body', ({ memoryPerBodyByte }) => memoryPerBodyByte, 2);
  row('body, MB', ({ bodyBytes }) => bodyBytes / 1e6, 1);
  console.log(table.toString());
  const { bodyBytes, zstdBytes, zstdSeconds, encodeCpuSeconds } = ours;
  console.log(
    `zstd: ${(zstdBytes / bodyBytes).toFixed(2)} of the size, ${(zstdSeconds / encodeCpuSeconds).toFixed(1)} × the time of encoding on top (random ids)`,
  );
  console.log(`goal: at most ${MOST_MEMORY_PER_BODY_BYTE} bytes of memory per byte of the body`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}
