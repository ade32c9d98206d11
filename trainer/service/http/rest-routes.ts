import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { HttpFailure } from '../failures.ts';
import { NAMED_KINDS, type NamedKind } from '../ids.ts';
import type { Service } from '../service.ts';
import { describeCheckpoint, describeRun, type TrainingRuns } from '../training-runs.ts';
import { NO_EXTERNAL_WEIGHTS, page, parseWith, readJson } from './bodies.ts';

const expiry = z.object({ ttl_seconds: z.number().int().min(3600).max(315_360_000).nullable() });

/** Looking at training runs and checkpoints, and keeping order among them. */
export function restRoutes({ runs }: Service): Hono {
  return new Hono()
    .get('/training_runs', (c) => {
      const { limit, offset } = parseWith(page(20), c.req.query());
      const all = runs.all();
      return c.json({
        training_runs: all.slice(offset, offset + limit).map(describeRun),
        cursor: { offset, limit, total_count: all.length },
      });
    })
    .get('/training_runs/:run', (c) => c.json(describeRun(runs.get(c.req.param('run')))))
    .get('/training_runs/:run/checkpoints', (c) => {
      const run = runs.get(c.req.param('run'));
      return c.json({ checkpoints: run.checkpoints.named().map((checkpoint) => describeCheckpoint(run, checkpoint)) });
    })
    .delete('/training_runs/:run/checkpoints/:kind/:name', (c) => {
      const { run, kind, name } = checkpointOf(c, runs);
      run.checkpoints.remove(kind, name);
      return c.body(null, 204);
    })
    .put('/training_runs/:run/checkpoints/:kind/:name/ttl', async (c) => {
      const { run, kind, name } = checkpointOf(c, runs);
      const { ttl_seconds: ttl } = await readJson(c, expiry);
      run.checkpoints.setTtl(kind, name, ttl);
      return c.body(null, 204);
    })
    .on(['POST', 'DELETE'], '/training_runs/:run/checkpoints/:kind/:name/publish', (c) => {
      const { run, kind, name } = checkpointOf(c, runs);
      run.checkpoints.setPublic(kind, name, c.req.method === 'POST');
      return c.body(null, 204);
    })
    .get('/training_runs/:run/checkpoints/:kind/:name/external_weights_urls', () => {
      throw new HttpFailure(400, NO_EXTERNAL_WEIGHTS);
    })
    .get('/checkpoints', (c) => {
      const { limit, offset } = parseWith(page(100), c.req.query());
      const all = runs.all().flatMap((run) => run.checkpoints.named().map((checkpoint) => describeCheckpoint(run, checkpoint)));
      return c.json({ checkpoints: all.slice(offset, offset + limit), cursor: { offset, limit, total_count: all.length } });
    })
    .post('/weights_info', async (c) => {
      const { tinker_path: path } = await readJson(c, z.object({ tinker_path: z.string() }));
      const owner = runs.ownerOf(path, 'tinker_path');
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

function checkpointOf(c: Context, runs: TrainingRuns): { run: ReturnType<TrainingRuns['get']>; kind: NamedKind; name: string } {
  const run = runs.get(c.req.param('run') ?? '');
  const kind = NAMED_KINDS.find((each) => each === c.req.param('kind'));
  const name = c.req.param('name') ?? '';
  if (kind === undefined) throw new HttpFailure(404, `no checkpoint of the kind '${c.req.param('kind')}'`);
  if (run.checkpoints.get(kind, name) === null) throw new HttpFailure(404, run.checkpoints.missing(kind, name));
  return { run, kind, name };
}
