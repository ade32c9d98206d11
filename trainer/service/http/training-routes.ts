import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { decompressBody } from '../../../services/tinker/wire/index.ts';
import { jsonCall, lossCall, unreadableCall } from '../call-identity.ts';
import { HttpFailure, UserError } from '../failures.ts';
import { CREATE_SEQ, modelId as modelIdOf, samplerId, trainingRequestId, unloadRequestId } from '../ids.ts';
import { decodeForwardBackward, type ForwardBackwardCall, readAddress, type SequenceLimits } from '../loss-batch.ts';
import type { CallIdentity, Operation } from '../run-journal.ts';
import type { Service } from '../service.ts';
import type { TrainingRun } from '../training-run.ts';
import { MAX_BODY_BYTES, parseWith, readAnyJson, readJson } from './bodies.ts';
import {
  addressSchema,
  createFromSchema,
  createModelSchema,
  loraSettings,
  readLoadWeights,
  readOptimStep,
  readSaveExternal,
  readSaveForSampler,
  readSaveWeights,
  refusedModel,
  refusedOptimizer,
} from './training-bodies.ts';

const modelOnly = z.object({ model_id: z.string() });

/** Calls of training clients. All but get_info and unload_model answer a future at once. */
export function trainingRoutes(service: Service): Hono {
  const { runs, sessions } = service;
  return new Hono()
    .post('/create_model', async (c) => {
      const body = await readJson(c, createModelSchema);
      sessions.get(body.session_id);
      service.checkBaseModel(body.base_model);
      const refusal = refusedModel(body);
      if (refusal !== null) throw new HttpFailure(400, refusal);
      const { session_id: sessionId, model_seq_id: modelSeqId, base_model: baseModel } = body;
      const model = { sessionId, modelSeqId, baseModel, lora: loraSettings(body.lora_config), userMetadata: body.user_metadata ?? null };
      const run = runs.begin(model, { op: 'create' }, jsonCall('create_model', body));
      return promise(c, run, CREATE_SEQ);
    })
    .post('/get_info', async (c) => {
      const { model_id: modelId } = await readJson(c, modelOnly);
      const { baseModel, lora } = runs.get(modelId).model;
      return c.json({
        type: 'get_info',
        model_id: modelId,
        model_data: { arch: 'llama', model_name: baseModel, tokenizer_id: service.tokenizerId },
        model_name: baseModel,
        is_lora: true,
        lora_rank: lora?.rank ?? null,
        optimizer_config: { type: 'adamw' },
      });
    })
    .post('/forward_backward', async (c) => {
      const body = await readProtobuf(c);
      const { modelId, seqId, forwardOnly } = decodeAddress(body);
      const run = runs.get(modelId);
      parseWith(addressSchema, { model_id: modelId, seq_id: seqId });
      const call = readLoss(body, service);
      if ('error' in call) refuse(run, seqId, unreadableCall('forward_backward', body), call.error);
      run.submit(seqId, { op: 'forward_backward', forwardOnly }, body, lossCall(call));
      return promise(c, run, seqId);
    })
    .post('/optim_step', (c) => submitJson(c, service, () => readOptimStep))
    .post('/save_weights', (c) => submitJson(c, service, () => readSaveWeights))
    .post('/save_weights_for_sampler', (c) =>
      submitJson(c, service, (run) => readSaveForSampler((samplingSeqId) => samplerId(run.model.sessionId, samplingSeqId))),
    )
    .post('/save_weights_external', (c) => submitJson(c, service, () => readSaveExternal))
    .post('/load_weights', async (c) => {
      const body = await readAnyJson(c);
      if (modelOnly.safeParse(body).success) return submitBody(c, service, body, () => readLoadWeights);
      return createFromCheckpoint(c, service, parseWith(createFromSchema, body));
    })
    .post('/unload_model', async (c) => {
      const { model_id: modelId } = await readJson(c, modelOnly);
      void runs.get(modelId).unload();
      return c.json({ request_id: unloadRequestId(modelId), model_id: modelId });
    });
}

/** A new model that starts from a checkpoint: its base model and rank come with it. */
function createFromCheckpoint(c: Context, { runs, sessions }: Service, body: z.infer<typeof createFromSchema>): Response {
  sessions.get(body.session_id);
  const refusal = refusedOptimizer(body.optimizer_config);
  if (refusal !== null) throw new HttpFailure(400, refusal);
  const { session_id: sessionId, model_seq_id: modelSeqId, path, optimizer } = body;
  const call = jsonCall('load_weights', body);
  // A repeat is answered even when its checkpoint has gone by now.
  const known = runs.find(modelIdOf(sessionId, modelSeqId));
  if (known?.checkRepeat(CREATE_SEQ, call)) return promise(c, known, CREATE_SEQ);
  const owner = runs.ownerOf(path, 'path');
  const model = {
    sessionId,
    modelSeqId,
    baseModel: body.base_model ?? owner.baseModel,
    lora: owner.lora,
    userMetadata: body.user_metadata ?? null,
  };
  const run = runs.begin(model, { op: 'create_from', path, optimizer }, call);
  return promise(c, run, CREATE_SEQ);
}

type ReaderFor = (run: TrainingRun) => (body: unknown, seq: number) => Operation;

async function submitJson(c: Context, service: Service, readerFor: ReaderFor): Promise<Response> {
  return submitBody(c, service, await readAnyJson(c), readerFor);
}

function submitBody(c: Context, { runs }: Service, body: unknown, readerFor: ReaderFor): Response {
  const { model_id: modelId, seq_id: seq } = parseWith(addressSchema, body);
  const run = runs.get(modelId);
  const operation = readerFor(run)(body, seq);
  if (operation.op === 'refused') refuse(run, seq, jsonCall('refused', body), operation.error);
  run.submit(seq, operation);
  return promise(c, run, seq);
}

/** Answers 400 to a call that can never be carried out. Its number is taken: it is used up, or every later call would wait for it. */
function refuse(run: TrainingRun, seq: number, call: CallIdentity, error: string): never {
  run.submit(seq, { op: 'refused', error }, undefined, call);
  throw new HttpFailure(400, error);
}

function readLoss(body: Uint8Array, limits: SequenceLimits): ForwardBackwardCall | { readonly error: string } {
  try {
    return decodeForwardBackward(body, limits);
  } catch (error) {
    if (error instanceof UserError) return { error: error.message };
    return { error: `the body is not a ForwardBackwardRequest message: ${error instanceof Error ? error.message : String(error)}` };
  }
}

const promise = (c: Context, run: TrainingRun, seq: number): Response =>
  c.json({ request_id: trainingRequestId(run.model.modelId, seq), model_id: run.model.modelId });

async function readProtobuf(c: Context): Promise<Uint8Array> {
  const type = c.req.header('content-type') ?? '';
  if (!type.startsWith('application/x-protobuf')) {
    throw new HttpFailure(415, `forward_backward takes a protobuf body (application/x-protobuf), not '${type}'`);
  }
  const raw = new Uint8Array(await c.req.arrayBuffer());
  if (c.req.header('content-encoding') !== 'zstd') return raw;
  try {
    return new Uint8Array(await decompressBody(raw, MAX_BODY_BYTES));
  } catch {
    throw new HttpFailure(400, `the body is not a zstd frame of at most ${MAX_BODY_BYTES} bytes, though Content-Encoding says so`);
  }
}

function decodeAddress(body: Uint8Array): ReturnType<typeof readAddress> {
  try {
    return readAddress(body);
  } catch {
    throw new HttpFailure(400, 'the body is not a ForwardBackwardRequest message');
  }
}
