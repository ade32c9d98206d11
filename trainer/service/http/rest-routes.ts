import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { HttpFailure } from '../failures.ts';
import type { CheckpointKind } from '../ids.ts';
import { formatPath } from '../ids.ts';
import type { Service } from '../service.ts';
import { describeCheckpoint, describeRun, type TrainingRuns } from '../training-runs.ts';
import { parseWith, readJson } from './bodies.ts';

const page = z.object({ limit: z.coerce.number().int().min(0).default(20), offset: z.coerce.number().int().min(0).default(0) });
const expiry = z.object({ ttl_seconds: z.number().int().min(3600).max(315_360_000).nullable() });

/** Looking at training runs and checkpoints, and keeping order among them. */
export function restRoutes({ runs }: Service): Hono {
  return new Hono()
    .get('/training_runs', (c) => {
      const { limit, offset } = parseWith(page, c.req.query());
      const all = runs.all();
      return c.json({
        training_runs: all.slice(offset, offset + limit).map(describeRun),
        cursor: { offset, limit, total_count: all.length },
      });
    })
    .get('/training_runs/:run', (c) => c.json(describeRun(runs.get(c.req.param('run')))))
    .get('/training_runs/:run/checkpoints', (c) => {
      const run = runs.get(c.req.param('run'));
      return c.json({ checkpoints: run.checkpoints.map((checkpoint) => describeCheckpoint(run, checkpoint)) });
    })
    .delete('/training_runs/:run/checkpoints/:kind/:name', (c) => {
      const { run, kind, name } = checkpointOf(c, runs);
      run.removeCheckpoint(kind, name);
      return c.body(null, 204);
    })
    .put('/training_runs/:run/checkpoints/:kind/:name/ttl', async (c) => {
      const { run, kind, name } = checkpointOf(c, runs);
      const { ttl_seconds: ttl } = await readJson(c, expiry);
      run.setExpiry(kind, name, ttl === null ? null : new Date(Date.now() + ttl * 1000).toISOString());
      return c.body(null, 204);
    })
    .get('/checkpoints', (c) => {
      const { limit, offset } = parseWith(page.extend({ limit: page.shape.limit.unwrap().default(100) }), c.req.query());
      const all = runs.all().flatMap((run) => run.checkpoints.map((checkpoint) => describeCheckpoint(run, checkpoint)));
      return c.json({ checkpoints: all.slice(offset, offset + limit), cursor: { offset, limit, total_count: all.length } });
    })
    .post('/weights_info', async (c) => {
      const { tinker_path: path } = await readJson(c, z.object({ tinker_path: z.string() }));
      const owner = runs.ownerOf(path);
      if (owner === null) throw new HttpFailure(404, `tinker_path: no checkpoint '${path}'`);
      return c.json({
        base_model: owner.baseModel,
        is_lora: true,
        lora_rank: owner.lora?.rank ?? null,
        train_unembed: false,
        train_mlp: owner.lora?.trainMlp ?? null,
        train_attn: owner.lora?.trainAttn ?? null,
        optimizer_config: { type: 'adamw' },
      });
    });
}

function checkpointOf(c: Context, runs: TrainingRuns): { run: ReturnType<TrainingRuns['get']>; kind: CheckpointKind; name: string } {
  const run = runs.get(c.req.param('run') ?? '');
  const kind = c.req.param('kind') === 'sampler_weights' ? 'sampler_weights' : 'weights';
  const name = c.req.param('name') ?? '';
  if (c.req.param('kind') !== kind || run.checkpoint(kind, name) === null) {
    throw new HttpFailure(404, `no checkpoint ${formatPath({ run: run.model.modelId, kind, name })}`);
  }
  return { run, kind, name };
}
