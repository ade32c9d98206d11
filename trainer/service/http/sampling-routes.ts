import { Hono } from 'hono';
import { z } from 'zod';
import { jsonCall } from '../call-identity.ts';
import { HttpFailure } from '../failures.ts';
import { parsePath } from '../ids.ts';
import type { Service } from '../service.ts';
import { asampleSchema, sampleJob } from './asample-body.ts';
import { count, readJson } from './bodies.ts';

const createSamplingSession = z.object({
  session_id: z.string(),
  sampling_session_seq_id: count,
  base_model: z.string().nullish(),
  model_path: z.string().startsWith('tinker://').nullish(),
});
const joinSamplingSession = z.object({ sampling_session_id: z.string() });

/** Calls of sampling clients. */
export function samplingRoutes(service: Service): Hono {
  const { sessions, sampling, runs } = service;
  return new Hono()
    .post('/create_sampling_session', async (c) => {
      const body = await readJson(c, createSamplingSession);
      const path = body.model_path ?? null;
      if (path !== null && parsePath(path)?.kind === 'weights') {
        throw new HttpFailure(400, `model_path: '${path}' is training state; sample from a tinker://<run>/sampler_weights/<name> path`);
      }
      const baseModel = path === null ? (body.base_model ?? null) : runs.ownerOf(path, 'model_path').baseModel;
      if (baseModel === null) throw new HttpFailure(400, 'base_model or model_path: one of them is needed');
      service.checkBaseModel(baseModel);
      const sampler = sessions.createSampler(body.session_id, body.sampling_session_seq_id, baseModel, path);
      sessions.touch(sampler.sessionId);
      return c.json({ type: 'create_sampling_session', sampling_session_id: sampler.samplerId });
    })
    .post('/join_sampling_session', async (c) => {
      const { sampling_session_id: id } = await readJson(c, joinSamplingSession);
      return c.json({ type: 'join_sampling_session', client_counter: sessions.joinSampler(id) });
    })
    .get('/samplers/:id', (c) => {
      const { samplerId, baseModel, modelPath } = sessions.sampler(c.req.param('id'));
      const isNamed = modelPath !== null && parsePath(modelPath) !== null;
      return c.json({ sampler_id: samplerId, base_model: baseModel, ...(isNamed ? { model_path: modelPath } : {}) });
    })
    .post('/asample', async (c) => {
      const body = await readJson(c, asampleSchema);
      const sampler = sessions.sampler(body.sampling_session_id);
      if (sampler.modelPath !== null) runs.ownerOfStored(sampler.modelPath, 'sampling_session_id');
      sessions.touch(sampler.sessionId);
      const requestId = sampling.submit(sampler, body.seq_id, jsonCall('sample', body), () => sampleJob(body, service));
      const sequenceIds = Array.from({ length: body.num_samples }, (_, i) => `${requestId}:${i}`);
      return c.json({ request_id: requestId, sample_sequence_ids: sequenceIds });
    });
}
