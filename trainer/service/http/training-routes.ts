import { zstdDecompressSync } from 'node:zlib';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { HttpFailure } from '../failures.ts';
import { CREATE_SEQ, samplerId, trainingRequestId } from '../ids.ts';
import { readAddress } from '../loss-batch.ts';
import type { Operation } from '../run-journal.ts';
import type { Service } from '../service.ts';
import type { TrainingRun } from '../training-run.ts';
import { parseWith, readAnyJson, readJson } from './bodies.ts';
import {
  addressSchema,
  createFromSchema,
  createModelSchema,
  loraSettings,
  readLoadWeights,
  readOptimStep,
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
      const lora = loraSettings(body.lora_config);
      const run = runs.begin({ sessionId, modelSeqId, baseModel, lora, userMetadata: body.user_metadata ?? null }, { op: 'create' });
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
      run.submit(parseWith(addressSchema, { model_id: modelId, seq_id: seqId }).seq_id, { op: 'forward_backward', forwardOnly }, body);
      return promise(c, run, seqId);
    })
    .post('/optim_step', (c) => submitJson(c, service, () => readOptimStep))
    .post('/save_weights', (c) => submitJson(c, service, () => readSaveWeights))
    .post('/save_weights_for_sampler', (c) =>
      submitJson(c, service, (run) => readSaveForSampler((samplingSeqId) => samplerId(run.model.sessionId, samplingSeqId))),
    )
    .post('/load_weights', async (c) => {
      const body = await readAnyJson(c);
      if (modelOnly.safeParse(body).success) return submitBody(c, service, body, () => readLoadWeights);
      return createFromCheckpoint(c, service, parseWith(createFromSchema, body));
    })
    .post('/unload_model', async (c) => {
      const { model_id: modelId } = await readJson(c, modelOnly);
      await runs.get(modelId).unload();
      return c.json({ type: 'unload_model', model_id: modelId });
    });
}

/** A new model that starts from a checkpoint: its base model and rank come with it. */
function createFromCheckpoint(c: Context, { runs, sessions }: Service, body: z.infer<typeof createFromSchema>): Response {
  sessions.get(body.session_id);
  const refusal = refusedOptimizer(body.optimizer_config);
  if (refusal !== null) throw new HttpFailure(400, refusal);
  const { session_id: sessionId, model_seq_id: modelSeqId, path, optimizer } = body;
  const owner = runs.ownerOf(path);
  if (owner === null) throw new HttpFailure(404, `path: no checkpoint '${path}'`);
  const baseModel = body.base_model ?? owner.baseModel;
  const userMetadata = body.user_metadata ?? null;
  const run = runs.begin({ sessionId, modelSeqId, baseModel, lora: owner.lora, userMetadata }, { op: 'create_from', path, optimizer });
  return promise(c, run, CREATE_SEQ);
}

type ReaderFor = (run: TrainingRun) => (body: unknown, seq: number) => Operation;

async function submitJson(c: Context, service: Service, readerFor: ReaderFor): Promise<Response> {
  return submitBody(c, service, await readAnyJson(c), readerFor);
}

function submitBody(c: Context, { runs }: Service, body: unknown, readerFor: ReaderFor): Response {
  const { model_id: modelId, seq_id: seq } = parseWith(addressSchema, body);
  const run = runs.get(modelId);
  run.submit(seq, readerFor(run)(body, seq));
  return promise(c, run, seq);
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
    return new Uint8Array(zstdDecompressSync(raw));
  } catch {
    throw new HttpFailure(400, 'the body is not a zstd frame, though Content-Encoding says so');
  }
}

function decodeAddress(body: Uint8Array): ReturnType<typeof readAddress> {
  try {
    return readAddress(body);
  } catch {
    throw new HttpFailure(400, 'the body is not a ForwardBackwardRequest message');
  }
}
