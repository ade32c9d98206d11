import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { uniformStream } from '../trainer/engine/random.ts';
import { trainerFolders } from './support/trainer-folders.ts';
import { ADAM, STUDENT } from './trainer-fixture.ts';
import { killTrainerAtStart, startTrainerProcess, textDatum, WireClient } from './trainer-process.ts';

/** Besides, every fourth time the next start is killed, too. */
const KILLS = 16;
/** Calls that are sent before the result of the first of them is waited for. */
const AHEAD = 4;

const { folder, weights } = trainerFolders('trainer-kills');

type Call = (client: WireClient, model: string, seq: number) => Promise<unknown>;
const gradient = (round: number): Call => {
  const data = Array.from({ length: 12 }, (_, i) =>
    textDatum(`files a${i} b${round}\ntask copy a${i} to b${round}\n$ cp a${i} b${round}\n`),
  );
  return async (client, model, seq) => client.forwardBackward(model, seq, data);
};
const json =
  (path: string, body: Readonly<Record<string, unknown>>): Call =>
  async (client, model, seq) =>
    (await client.post(path, { model_id: model, seq_id: seq, ...body })).request_id;
/** Two batches a step, twenty steps, a state saved again and again under one name and a sampler under a new one. */
const program: readonly Call[] = Array.from({ length: 20 }, (_, round) => [
  gradient(2 * round),
  gradient(2 * round + 1),
  json('optim_step', { adam_params: { ...ADAM, weight_decay: 0.01, grad_clip_norm: 1 } }),
  json('save_weights', { path: 'state', overwrite: true }),
  json('save_weights_for_sampler', { path: `sampler-${round}`, kind: 'snapshot' }),
]).flat();

/** Repeats a call as long as the service is away; what the service refuses is an error. */
async function insist<Result>(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (error instanceof Error && / [45]\d\d /.test(error.message)) throw error;
      await sleep(5);
    }
  }
}

/** Goes through the program and returns every result, as it was answered first. */
async function train(client: WireClient): Promise<{ readonly model: string; readonly results: readonly string[] }> {
  const { session_id: session } = await insist(() => client.post('create_session', { tags: [] }));
  const body = { session_id: session, model_seq_id: 0, base_model: STUDENT, lora_config: { rank: 8, seed: 3 } };
  const model = String((await insist(() => client.post('create_model', body))).model_id);
  const results: string[] = [];
  for (let seq = 1; seq <= program.length + AHEAD; seq++) {
    const call = program[seq - 1];
    if (call !== undefined) await insist(() => call(client, model, seq));
    if (seq > AHEAD) results.push(await resultOf(client, model, seq - AHEAD));
  }
  return { model, results };
}

async function resultOf(client: WireClient, model: string, seq: number): Promise<string> {
  const result = await insist(() => client.retrieve(`${model}:${seq}`));
  return result instanceof Uint8Array ? Buffer.from(result).toString('base64') : JSON.stringify(result).replaceAll(model, 'M');
}

/** Bytes of every checkpoint, by file. */
function filesOf(state: string): Record<string, string> {
  const run = join(state, 'models', readdirSync(join(state, 'models'))[0] ?? '');
  const names = ['weights', 'sampler_weights'].flatMap((kind) => readdirSync(join(run, kind)).map((name) => join(kind, name)));
  return Object.fromEntries(
    names.filter((name) => name.endsWith('.safetensors')).map((name) => [name, readFileSync(join(run, name)).toString('base64')]),
  );
}

it('comes to the same weights, moments and results however often it is killed, and forgets nothing it has answered', async () => {
  const calmState = join(folder, 'calm');
  const calm = await startTrainerProcess({ state: calmState, weights });
  const expected = await train(new WireClient(calm.url));
  const port = Number(new URL(calm.url).port);
  await calm.kill('SIGTERM');
  expect(expected.results.filter((result) => result.includes('"error"'))).toEqual([]);

  const flags = { state: join(folder, 'killed'), weights, port };
  const random = uniformStream(20);
  const client = new WireClient(calm.url);
  let trainer = await startTrainerProcess(flags);
  const training = train(client);
  let isDone = false;
  void training.finally(() => {
    isDone = true;
  });
  let kills = 0;
  for (; kills < KILLS && !isDone; kills++) {
    await sleep(60 * random());
    await trainer.kill('SIGKILL');
    if (kills % 4 === 0) await killTrainerAtStart(flags, 50 + 500 * random());
    trainer = await startTrainerProcess(flags);
  }
  const { model, results } = await training;
  expect(kills).toBe(KILLS);
  expect(results).toEqual(expected.results);
  // What was answered once is answered again, the same.
  for (const [i, result] of results.entries()) expect(await resultOf(client, model, i + 1)).toBe(result);
  expect(Object.keys(filesOf(flags.state))).toHaveLength(22);
  expect(filesOf(flags.state)).toEqual(filesOf(calmState));
  await trainer.kill('SIGTERM');
}, 600_000);
