import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';

/**
 * That the vectors can fail: recordings in which one value was changed, each a value that our client decides. The runner must
 * name all of them and none else.
 */

const fixture = (name: string) => readFileSync(fileURLToPath(new URL(`../fixtures/tinker/${name}`, import.meta.url)), 'utf8');
const runner = fileURLToPath(new URL('./run.ts', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'mutations-'));
afterAll(() => rmSync(dir, { recursive: true }));

/** By family: a case (by name or place) and what is changed in it. A field that is not there is added. */
const OF_A_CASE: Readonly<Record<string, readonly (readonly [name: string | number, path: string])[]>> = {
  fwdbwd_encode: [
    [0, 'canonical_base64'],
    [0, 'sdk_body_base64'],
    [0, 'estimated_bytes'],
    [0, 'expected.loss_fn'],
  ],
  fwdbwd_encode_zstd: [
    [0, 'decompressed_base64'],
    [0, 'req_headers.content-encoding'],
  ],
  fwdbwd_response_decode: [[0, 'expected.loss_fn_output_type']],
  sample_response_decode: [
    [0, 'expected.sequences.0.tokens.0'],
    [0, 'expected.sequences.0.stop_reason'],
  ],
  fwdbwd_chunking: [
    [0, 'arrival_order.0.seq_id'],
    [0, 'combined.n_outputs'],
    [0, 'estimated_bytes_per_datum.0'],
  ],
  json_calls: [
    ['create_model_lora', 'exchanges.0.path'],
    ['create_model_lora', 'exchanges.0.method'],
    ['create_model_lora', 'exchanges.0.req.new'],
    ['load_state', 'exchanges.0.path'],
    ['optim_step_defaults', 'exchanges.0.req.adam_params.eps'],
    ['optim_step_defaults', 'result.grad_norm'],
    ['sample_minimal', 'exchanges.0.req.sampling_params.top_k'],
    ['sample_minimal', 'exchanges.1.req.allow_metadata_only'],
    ['sample_all', 'result.sequences.0.logprobs.1'],
    ['rest_list_training_runs', 'exchanges.0.query'],
  ],
  poll_and_retry: [
    ['try_again_200_then_ok', 'exchanges.2.req.allow_metadata_only'],
    ['try_again_200_then_ok', 'exchanges.2.t_ms'],
    ['try_again_200_then_ok', 'seconds'],
    ['try_again_200_then_ok', 'exchanges.1.req_headers.x-tinker-request-type'],
    ['submit_429_then_ok', 'exchanges.1.req_headers.x-idempotency-key'],
    ['submit_400', 'exchanges.0.path'],
    ['poll_410_sample', 'result.sequences.0.tokens.0'],
  ],
  auth_jwt: [
    [1, 'exchanges.2.req_headers.x-idempotency-key'],
    [1, 'exchanges.2.req_headers.x-api-key'],
    [0, 'exchanges.3.path'],
  ],
};

/** Whole sessions: what is changed in which of their exchanges (from 1), and the cases that must then fail. */
const HATCHERY = 'hatchery-0.3.0.sdk-0.18.2';
const SKYRL = 'skyrl-0.4.0.sdk-0.38.0-shimmed';
const OF_A_SESSION: Readonly<Record<string, readonly (readonly [exchange: number, path: string, failing: string])[]>> = {
  [HATCHERY]: [
    [9, 'path', `session.${HATCHERY} #9`],
    [15, 'req.forward_backward_input.new', `session.${HATCHERY} #15`],
    [32, 'res.sequences.0.logprobs.3', `results.${HATCHERY} sample_seed42_n2`],
    [36, 'res.sequences.0.tokens.0', `results.${HATCHERY} sample_stop_token_ids`],
    [58, 'res.loss_fn_outputs.0.logprobs.data.0', `results.${HATCHERY} create_training_client_from_state`],
  ],
  [SKYRL]: [
    [12, 'path', `session.${SKYRL} #12`],
    [13, 'res_decoded.loss_fn_outputs.0.logprobs.data.0', `session.${SKYRL} #13`],
    [16, 'req.type', `session.${SKYRL} #16`],
    [14, 'req_decoded.loss_fn', `session.${SKYRL} #14`],
    [32, 'req.new', `session.${SKYRL} #32`],
    [54, 'path', `session.${SKYRL} #54`],
  ],
};

let failed: readonly string[] = [];

beforeAll(async () => {
  for (const [family, changes] of Object.entries(OF_A_CASE)) {
    const cases = fixture(`${family}.jsonl`).trim().split('\n').map(parsed);
    const named = (name: string | number) => cases.find((one, i) => name === i || one.case === name) ?? {};
    const mutants = changes.map(([name, path]) => ({ ...changed(named(name), path), case: `${name} ${path}` }));
    // As recorded they must still pass.
    const originals = [...new Set(changes.map(([name]) => named(name)))];
    write(`${family}.jsonl`, [...originals, ...mutants]);
  }
  for (const [session, changes] of Object.entries(OF_A_SESSION)) {
    const exchanges = fixture(`session.${session}.jsonl`).trim().split('\n').map(parsed);
    for (const [number, path] of changes) exchanges[number - 1] = changed(exchanges[number - 1] ?? {}, path);
    write(`session.${session}.jsonl`, exchanges);
    writeFileSync(join(dir, `results.${session}.json`), fixture(`results.${session}.json`));
  }
  const { exitCode, stdout } = await execa(process.execPath, [runner, dir], { reject: false });
  expect(exitCode).toBe(1);
  let family = '';
  failed = stdout.split('\n').flatMap((line) => {
    family = /^(\S+) \d+(\/\d+| of \d+ apply)/.exec(line)?.[1] ?? family;
    const name = /^ {2}FAILED (.+?): /.exec(line)?.[1];
    return name === undefined ? [] : [`${family} ${name}`];
  });
}, 60_000);

const ofCases = Object.entries(OF_A_CASE).flatMap(([family, changes]) => changes.map(([name, path]) => `${family} ${name} ${path}`));
const ofSessions = Object.values(OF_A_SESSION).flatMap((changes) => changes.map(([, , failing]) => failing));

it.each([...ofCases, ...ofSessions])('%s', (mutant) => expect(failed).toContain(mutant));

it('names no case that is as recorded', () => expect(failed.toSorted()).toEqual([...ofCases, ...ofSessions].sort()));

type Json = { [key: string]: unknown };
const parsed = (line: string): Json => JSON.parse(line);

function write(name: string, cases: readonly unknown[]): void {
  writeFileSync(join(dir, name), cases.map((one) => `${JSON.stringify(one)}\n`).join(''));
}

/** A copy in which the value at a path is another one of its type. */
function changed(original: Json, path: string): Json {
  const copy = structuredClone(original);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let place: Json = copy;
  for (const key of keys) place = place[key] as Json;
  place[last] = another(place[last]);
  return copy;
}

function another(value: unknown): unknown {
  if (typeof value === 'number') return value + 1000;
  if (typeof value === 'boolean') return !value;
  if (typeof value !== 'string') return 'new';
  const middle = Math.floor(value.length / 2);
  return value.length < 40 ? `${value}X` : value.slice(0, middle) + (value[middle] === 'A' ? 'B' : 'A') + value.slice(middle + 1);
}
