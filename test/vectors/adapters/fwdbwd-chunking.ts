import { TinkerClient } from '../../../services/tinker/index.ts';
import { estimatedBytes, type ForwardBackwardOutput, type TrainingDatum } from '../../../services/tinker/wire/index.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { type Arrival, TrainingServer } from '../tinker/training-server.ts';

type Recorded = {
  readonly seq_id?: number;
  readonly datums?: number;
  readonly first_tokens?: readonly number[];
  readonly optim_step_seq_id?: number;
};
type ChunkingCase = {
  readonly client_config: Readonly<Record<string, unknown>>;
  readonly datum_lengths: readonly number[];
  readonly estimated_bytes_per_datum: readonly number[];
  readonly arrival_order: readonly Recorded[];
  readonly combined: { readonly metrics: Readonly<Record<string, number>>; readonly n_outputs: number };
};

/** A whole batch and an update through the client: what arrives in which order, and what the parts are joined to. */
async function chunking(vector: ChunkingCase): Promise<Finding> {
  const firstTokens = vector.arrival_order
    .toSorted((a, b) => (a.seq_id ?? 0) - (b.seq_id ?? 0))
    .flatMap(({ first_tokens }) => first_tokens ?? []);
  const datums = vector.datum_lengths.map((length, i) => datum(length, firstTokens[i] ?? 0));
  await using server = await TrainingServer.start(vector.client_config);
  await using client = await TinkerClient.connect({ baseUrl: server.url, apiKey: 'tml-vectors' });
  const training = client.training('sess-1:train:0', { nextSeqId: 1 });
  const backward = training.forwardBackward(datums, 'cross_entropy');
  const update = training.optimStep({ learningRate: 1e-4 });
  const output = await backward;
  await update;

  const found =
    difference(vector.estimated_bytes_per_datum, datums.map(estimatedBytes), undefined, 'estimated_bytes_per_datum') ??
    difference(inOrder(vector.arrival_order), inOrder(server.arrivals.map(arrived)), undefined, 'arrival_order') ??
    difference(vector.combined, combined(output), undefined, 'combined');
  return found === null ? null : { difference: found };
}

function datum(length: number, firstToken: number): TrainingDatum {
  const tokens = new Int32Array(length);
  tokens[0] = firstToken;
  return { modelInput: tokens, lossFnInputs: { target_tokens: tokens, weights: new Float32Array(length) } };
}

function arrived(arrival: Arrival): Recorded & { readonly body_bytes?: number } {
  if (arrival.call === 'optim_step') return { optim_step_seq_id: arrival.seqId };
  const { seqId, datums } = arrival.request;
  const first_tokens = datums.map(({ modelInput: [chunk] }) => (chunk?.type === 'encoded_text' ? (chunk.tokens[0] ?? 0) : -1));
  return { seq_id: seqId, datums: datums.length, first_tokens, body_bytes: arrival.body.byteLength };
}

/** Those that were sent at once, before the first chunk, arrive in any order. */
function inOrder(arrivals: readonly Recorded[]): Recorded[] {
  const first = arrivals.findIndex(({ seq_id }) => seq_id === 1);
  return [...arrivals.slice(0, first).sort((a, b) => (a.seq_id ?? 0) - (b.seq_id ?? 0)), ...arrivals.slice(first)];
}

function combined({ metrics, lossFnOutputs }: ForwardBackwardOutput): unknown {
  return { metrics, n_outputs: lossFnOutputs.length };
}

export const fwdbwdChunking: FamilyAdapter = { family: 'fwdbwd_chunking', kinds: { '': chunking } };
