import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { fromBinary } from '@bufbuild/protobuf';
import { ForwardBackwardRequestSchema, SampleResponseSchema } from '../../services/tinker/wire/tinker_public_pb.ts';
import { trainingRequestId } from './ids.ts';
import type { Outcome } from './outcome.ts';
import type { CallIdentity, Operation, RunRecordOf } from './run-journal.ts';
import type { Sampler } from './session-records.ts';
import type { SampleJob } from './threads/sampling-backend.ts';

/** Tokens of one call, as a service would charge for them. */
export type CallTokens = { readonly prompt: number; readonly sampled: number; readonly scored: number; readonly trained: number };

/** One line of the call log: a call that was carried out. */
export type LoggedCall = CallTokens & {
  /** ISO time of its end. */
  readonly at: string;
  readonly kind: 'create' | 'load' | 'forward' | 'forward_backward' | 'optim_step' | 'save' | 'sample' | 'score' | 'refused';
  readonly request: string;
  readonly session: string;
  /** The model or the sampling session. */
  readonly owner: string;
  readonly seq: number;
  /** A checkpoint that was saved or loaded; what was sampled from: a path or a base model. Null where there is none. */
  readonly weights: string | null;
  /** Sixteen hex digits of what was asked for: of the prompt's ids for samples and scores, of the whole call (without model and number) in training. */
  readonly digest: string;
  /** Why it failed; null when it did not. A failed call counts no tokens. */
  readonly failed: string | null;
};

const NO_TOKENS: CallTokens = { prompt: 0, sampled: 0, scored: 0, trained: 0 };

/**
 * A file with one JSON line for each call that was carried out. A line is written before anybody can be told the result: a call that was
 * answered is counted, and one that was counted and never answered is one whose caller, or this service, died in between. A request id is
 * counted once: a call that a kill made the service do again is still one call.
 */
export class CallLog {
  readonly #path: string;
  readonly #counted: Set<string>;

  private constructor(path: string, counted: Set<string>) {
    this.#path = path;
    this.#counted = counted;
  }

  /** Goes on with the file of an earlier life, without the line that a kill may have cut short. */
  static open(path: string): CallLog {
    if (!existsSync(path)) return new CallLog(path, new Set());
    const bytes = readFileSync(path);
    const end = bytes.lastIndexOf(10) + 1;
    if (end < bytes.length) truncateSync(path, end);
    const lines = bytes.toString('utf8', 0, end).split('\n').filter(Boolean);
    return new CallLog(path, new Set(lines.map((line) => (JSON.parse(line) as LoggedCall).request)));
  }

  add(call: LoggedCall): void {
    if (this.#counted.has(call.request)) return;
    appendFileSync(this.#path, `${JSON.stringify(call)}\n`);
    this.#counted.add(call.request);
  }
}

/** A call of a sampling client. */
export function sampleCall(at: Date, sampler: Sampler, seq: number, job: Omit<SampleJob, 'weights'>, outcome: Outcome): LoggedCall {
  const { prompt, promptLogprobs, maxTokens } = job.request;
  // The protocol has no call that only scores: one that wants a single token besides is meant.
  const isScore = promptLogprobs && maxTokens <= 1;
  const tokens = { ...NO_TOKENS, [isScore ? 'scored' : 'prompt']: prompt.length, sampled: sampledTokens(outcome) };
  return {
    at: at.toISOString(),
    kind: isScore ? 'score' : 'sample',
    request: `${sampler.samplerId}:${seq}`,
    session: sampler.sessionId,
    owner: sampler.samplerId,
    seq,
    weights: sampler.modelPath ?? sampler.baseModel,
    digest: promptDigest(prompt),
    ...(outcome.kind === 'failed' ? NO_TOKENS : tokens),
    failed: failureIn(outcome),
  };
}

/** The `digest` of a prompt. */
export const promptDigest = (prompt: Int32Array): string =>
  createHash('sha256')
    .update(new Uint8Array(prompt.buffer, prompt.byteOffset, prompt.byteLength))
    .digest('hex')
    .slice(0, 16);

export type TrainingCallEnd = {
  readonly at: Date;
  readonly model: RunRecordOf<'model'>;
  readonly seq: number;
  readonly operation: Operation;
  readonly call: CallIdentity | undefined;
  /** Reads the bytes of a forward_backward. */
  readonly body: () => Uint8Array;
  readonly outcome: Outcome;
};

/** A call of a training client. */
export function trainingCall({ at, model, seq, operation, call, body, outcome }: TrainingCallEnd): LoggedCall {
  const isTrained = operation.op === 'forward_backward' && outcome.kind !== 'failed';
  return {
    at: at.toISOString(),
    kind: kindOf(operation),
    request: trainingRequestId(model.modelId, seq),
    session: model.sessionId,
    owner: model.modelId,
    seq,
    weights: weightsIn(operation, outcome),
    digest: call?.sha256.slice(0, 16) ?? '',
    ...NO_TOKENS,
    ...(isTrained ? { trained: trainedTokens(body()) } : {}),
    failed: failureIn(outcome),
  };
}

function kindOf(operation: Operation): LoggedCall['kind'] {
  switch (operation.op) {
    case 'create_from':
    case 'load_weights':
      return 'load';
    case 'save_weights':
    case 'save_weights_for_sampler':
      return 'save';
    case 'forward_backward':
      return operation.forwardOnly ? 'forward' : 'forward_backward';
    default:
      return operation.op;
  }
}

function weightsIn(operation: Operation, outcome: Outcome): string | null {
  if (operation.op === 'create_from' || operation.op === 'load_weights') return operation.path;
  return outcome.kind === 'json' && typeof outcome.value.path === 'string' ? outcome.value.path : null;
}

const failureIn = (outcome: Outcome): string | null => (outcome.kind === 'failed' ? outcome.error : null);

const TOKEN_BYTES = Int32Array.BYTES_PER_ELEMENT;

/** A sequence of n tokens comes as n − 1 inputs and n − 1 targets, and counts n. */
function trainedTokens(body: Uint8Array): number {
  const { data } = fromBinary(ForwardBackwardRequestSchema, body);
  const inputs = data.flatMap(({ modelInput }) => modelInput);
  return inputs.reduce((sum, { chunk }) => sum + (chunk.case === 'encodedText' ? chunk.value.tokens.length / TOKEN_BYTES : 0), data.length);
}

function sampledTokens(outcome: Outcome): number {
  if (outcome.kind !== 'proto') return 0;
  return fromBinary(SampleResponseSchema, outcome.bytes).sequences.reduce((sum, { tokens }) => sum + tokens.length / TOKEN_BYTES, 0);
}
