import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { LoggedCall } from '../trainer/service/call-log.ts';
import { trainerFolders } from './support/trainer-folders.ts';
import { ADAM, STUDENT, textPrompt } from './trainer-fixture.ts';
import { startTrainerProcess, textDatum, WireClient } from './trainer-process.ts';

const { folder, weights } = trainerFolders('trainer-call-log');
const file = join(folder, 'calls.jsonl');
const TEXT = 'files sun\n$ ';

/** What a call was and what it counted: [kind, prompt, sampled, scored, trained]. */
const counted = () =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as LoggedCall)
    .map(({ kind, prompt, sampled, scored, trained }) => [kind, prompt, sampled, scored, trained]);

it('counts each call once, with its tokens, over kills of the service', async () => {
  const flags = { state: join(folder, 'state'), weights, env: { STILLROOM_TRAINER_CALL_LOG: file } };
  const first = await startTrainerProcess(flags);
  const port = Number(new URL(first.url).port);
  const client = new WireClient(first.url);
  const session = String((await client.post('create_session', { tags: [] })).session_id);
  const body = { session_id: session, model_seq_id: 0, base_model: STUDENT, lora_config: { rank: 4, seed: 1 } };
  const model = String(((await client.call('create_model', body)) as Record<string, unknown>).model_id);
  const sampler = { session_id: session, sampling_session_seq_id: 0, base_model: STUDENT };
  const samplingSession = String((await client.post('create_sampling_session', sampler)).sampling_session_id);
  const ask = (seq: number, params: object, more: object = {}) =>
    client.call('asample', {
      sampling_session_id: samplingSession,
      seq_id: seq,
      prompt: textPrompt(TEXT),
      sampling_params: params,
      ...more,
    });
  await ask(1, { max_tokens: 5, stop: [], seed: 3 });
  await ask(1, { max_tokens: 5, stop: [], seed: 3 }); // a repeat
  await ask(2, { max_tokens: 1 }, { prompt_logprobs: true });

  const data = [textDatum('cp sun map\n'), textDatum('rm key\n')];
  const gradients = await client.forwardBackward(model, 1, data);
  await client.retrieve(gradients);
  const update = (await client.post('optim_step', { model_id: model, seq_id: 2, adam_params: ADAM })).request_id;
  await first.kill('SIGKILL');
  const second = await startTrainerProcess({ ...flags, port });
  await client.retrieve(update);
  await client.retrieve(gradients);
  await client.call('save_weights', { model_id: model, seq_id: 3, path: 'state' });
  const path = `tinker://${model}/weights/state`;
  await client.call('load_weights', { session_id: session, model_seq_id: 1, path, optimizer: true });
  await second.kill('SIGTERM');

  expect(counted()).toEqual([
    ['create', 0, 0, 0, 0],
    ['sample', TEXT.length, 5, 0, 0],
    ['score', 0, 1, TEXT.length, 0],
    ['forward_backward', 0, 0, 0, 'cp sun map\n'.length + 'rm key\n'.length],
    ['optim_step', 0, 0, 0, 0],
    ['save', 0, 0, 0, 0],
    ['load', 0, 0, 0, 0],
  ]);
  const paths = readFileSync(file, 'utf8').match(/"weights":"tinker:[^"]+"/g);
  expect(paths).toEqual([`"weights":"${path}"`, `"weights":"${path}"`]);
});
