import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { Journal } from '../trainer/service/journal.ts';
import { trainerFolders } from './support/trainer-folders.ts';
import { decodeSample, startTrainerProcess, type Trainer, textDatum, WireClient } from './trainer-process.ts';

const { folder, weights } = trainerFolders('trainer-restart');

const adam = { learning_rate: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.01, grad_clip_norm: 1 };
const batch = (seed: number) =>
  Array.from({ length: 24 }, (_, i) => textDatum(`files a${i} b${seed}\ntask copy a${i} to b${seed}\n$ cp a${i} b${seed}\n`));

/** Six gradients, three steps, a saved state and a sampler, as fast as the service takes them. Numbers from 1. */
const program: readonly ((client: WireClient, model: string, seq: number) => Promise<unknown>)[] = [
  (client, model, seq) => client.forwardBackward(model, seq, batch(1)),
  (client, model, seq) => client.forwardBackward(model, seq, batch(2)),
  (client, model, seq) => client.post('optim_step', { model_id: model, seq_id: seq, adam_params: adam }),
  (client, model, seq) => client.forwardBackward(model, seq, batch(3)),
  (client, model, seq) => client.forwardBackward(model, seq, batch(4)),
  (client, model, seq) => client.post('optim_step', { model_id: model, seq_id: seq, adam_params: adam }),
  (client, model, seq) => client.forwardBackward(model, seq, batch(5)),
  (client, model, seq) => client.forwardBackward(model, seq, batch(6), 'cross_entropy', true),
  (client, model, seq) => client.post('optim_step', { model_id: model, seq_id: seq, adam_params: adam }),
  (client, model, seq) => client.post('save_weights', { model_id: model, seq_id: seq, path: 'end', overwrite: false }),
  (client, model, seq) => client.post('save_weights_for_sampler', { model_id: model, seq_id: seq, path: 'end', kind: 'snapshot' }),
];

async function createModel(client: WireClient): Promise<string> {
  const { session_id: session } = await client.post('create_session', { tags: [] });
  const lora = { rank: 8, seed: 3, train_attn: true, train_mlp: true, train_unembed: true };
  const answer = await client.post('create_model', {
    session_id: session,
    model_seq_id: 0,
    base_model: 'stillroom/tiny-student',
    lora_config: lora,
  });
  return String(answer.model_id);
}

/** Everything training has made: the bytes of weights and moments, and every call's result. */
async function outcome(state: string, client: WireClient, model: string) {
  const results: (string | Record<string, unknown>)[] = [];
  for (let seq = 1; seq <= program.length; seq += 1) {
    const result = await client.retrieve(`${model}:${seq}`);
    results.push(
      result instanceof Uint8Array ? Buffer.from(result).toString('base64') : JSON.parse(JSON.stringify(result).replaceAll(model, 'M')),
    );
  }
  const models = join(state, 'models', readdirSync(join(state, 'models'))[0] ?? '');
  const files = ['weights/end@10.safetensors', 'weights/end@10.optimizer.safetensors', 'sampler_weights/end@11.safetensors'];
  return { results, files: files.map((file) => readFileSync(join(models, file)).toString('base64')) };
}

/** Calls that were accepted and have no result yet, by the journal. */
function unfinishedCalls(state: string): number {
  const seen = { request: 0, done: 0 };
  const journal = Journal.open(join(state, 'models', readdirSync(join(state, 'models'))[0] ?? '', 'journal.log'), ({ header }) => {
    const { record } = header as { record: string };
    if (record === 'request' || record === 'done') seen[record] += 1;
  });
  journal.close();
  return seen.request - seen.done;
}

describe('the trainer killed in the middle of training', () => {
  it('applies every call exactly once: bit for bit what an unkilled run makes', async () => {
    const calmState = join(folder, 'calm');
    const calm = await startTrainerProcess({ state: calmState, weights });
    const calmClient = new WireClient(calm.url);
    const calmModel = await createModel(calmClient);
    const startedMs = performance.now();
    for (const [i, step] of program.entries()) await step(calmClient, calmModel, i + 1);
    const expected = await outcome(calmState, calmClient, calmModel);
    const programMs = performance.now() - startedMs;
    await calm.kill('SIGTERM');
    expect(expected.results.filter((result) => typeof result === 'object' && 'error' in result)).toEqual([]);

    const state = join(folder, 'killed');
    let trainer = await startTrainerProcess({ state, weights });
    const model = await createModel(new WireClient(trainer.url));
    // Kills fall at different stages: while calls come in, and while they are carried out.
    const unfinished: number[] = [];
    for (const [round, share] of [0.1, 0.4, 0.6].entries()) {
      const client = new WireClient(trainer.url);
      const calls = program.slice(0, 4 * (round + 1)).map(async (step, i) => step(client, model, i + 1).catch(() => null));
      await Promise.all(calls.slice(0, -1));
      await sleep(share * (programMs / 3));
      await trainer.kill('SIGKILL');
      unfinished.push(unfinishedCalls(state));
      trainer = await startTrainerProcess({ state, weights });
    }
    // At least one kill fell between a call's answer and its result; otherwise this test would prove nothing.
    expect(Math.max(...unfinished)).toBeGreaterThan(0);
    const client = new WireClient(trainer.url);
    // A client that does not know what arrived sends everything again.
    for (const [i, step] of program.entries()) await step(client, model, i + 1);
    expect(await outcome(state, client, model)).toEqual(expected);
    await trainer.kill('SIGTERM');
  }, 120_000);
});

describe('after a restart', () => {
  let trainer: Trainer;
  const state = join(folder, 'sampling');
  afterAll(() => trainer.kill('SIGTERM'));

  it('samplers sample the same, and a sample that was in flight is gone, so that clients send it again', async () => {
    trainer = await startTrainerProcess({ state, weights });
    let client = new WireClient(trainer.url);
    const model = await createModel(client);
    await client.retrieve(await client.forwardBackward(model, 1, batch(1)));
    await client.call('optim_step', { model_id: model, seq_id: 2, adam_params: adam });
    const saved = await client.call('save_weights_for_sampler', {
      model_id: model,
      seq_id: 3,
      sampling_session_seq_id: 0,
      kind: 'snapshot',
    });
    const sampler = (saved as { sampling_session_id: string }).sampling_session_id;
    const ask = (seq: number) => ({
      sampling_session_id: sampler,
      seq_id: seq,
      num_samples: 2,
      prompt: { chunks: [{ type: 'encoded_text', tokens: [65, 66] }] },
      sampling_params: { max_tokens: 20, seed: 5, stop: [] },
    });
    const before = decodeSample(await client.call('asample', ask(0)));
    const lost = await client.post('asample', ask(1));
    await trainer.kill('SIGKILL');
    trainer = await startTrainerProcess({ state, weights });
    client = new WireClient(trainer.url);
    expect((await client.send('POST', 'retrieve_future', { request_id: lost.request_id })).status).toBe(410);
    expect(decodeSample(await client.call('asample', ask(2)))).toEqual(before);
  }, 60_000);
});
