import { z } from 'zod';
import { RestClient, type Sampler, TinkerClient } from '../../../services/tinker/index.ts';
import { encodeSampleResponse } from '../../../services/tinker/wire/index.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, EXACT } from '../same.ts';
import { bodyDifference, pattern } from '../tinker/compare-requests.ts';
import { type Clients, callOf, given } from '../tinker/recorded-calls.ts';
import { type Exchange, exchangeSchema, type SeenRequest, startScriptedServer } from '../tinker/scripted-server.ts';
import { whyUnspoken } from '../tinker/unspoken.ts';

const caseSchema = z.looseObject({ sdk_call: z.string().default(''), exchanges: z.array(exchangeSchema), result: z.unknown().optional() });
const API = '/api/v1/';

/** Calls of the public API against a server that answers as recorded: all requests must be the recorded ones, and the results too. */
export const jsonCalls: FamilyAdapter = { family: 'json_calls', kinds: { '': (input) => check(caseSchema.parse(input)) } };

async function check({ sdk_call, exchanges, result }: z.infer<typeof caseSchema>): Promise<Finding> {
  const unspoken = exchanges.map(unspokenFinding).filter((finding) => finding !== null);
  const [first] = [...unspoken.filter((finding) => 'difference' in finding), ...unspoken];
  if (first !== undefined) return first;
  return checkCalls({ sdkCall: sdk_call, exchanges, result, sessionId: 'sess-1' });
}

export type RecordedCalls = {
  readonly sdkCall?: string;
  readonly exchanges: readonly Exchange[];
  readonly result?: unknown;
  /** Of the recording's client, for calls after it was opened. */
  readonly sessionId: string;
};

/** Makes the recorded calls with our client. */
export async function checkCalls({ sdkCall, exchanges, result, sessionId }: RecordedCalls): Promise<Finding> {
  const earlier = whatCameBefore(exchanges);
  const paths = new Set(exchanges.map(({ path }) => path));
  await using server = await startScriptedServer([...earlier.exchanges, ...exchanges], {
    usual: { ...USUAL, [`${API}create_session`]: { session_id: sessionId } },
  });
  const connection = { baseUrl: server.url, apiKey: 'tml-vectors' };
  await using stack = new AsyncDisposableStack();
  const opened = await open(exchanges, connection, earlier, stack);
  const values: unknown[] = opened.values;
  for (const exchange of exchanges) values.push(await callOf(exchange, sdkCall)?.(opened.clients));
  // What opening a client takes is compared where it was recorded; after it come the samplers and samples that the recording had before.
  const seen = server.seen.filter(({ path }) => !(path in USUAL) || paths.has(path)).slice(earlier.exchanges.length);
  return requestFinding(exchanges, seen) ?? resultFinding(result, values);
}

/** Null for a call of our client; of those that it never makes only the known ones are no mistake. */
export function unspokenFinding(exchange: Exchange): Finding {
  if (isImplied(exchange) || callOf(exchange) !== null) return null;
  const why = whyUnspoken(exchange);
  return why === null ? { difference: `our client never sends ${exchange.method} ${exchange.path}` } : { notApplicable: why };
}

/** Requests that our client sends by itself, as part of another call. */
const isImplied = ({ method, path }: Exchange) => method === 'POST' && (IMPLIED.has(path) || path in USUAL);
const IMPLIED: ReadonlySet<string> = new Set([`${API}retrieve_future`, `${API}session_heartbeat`, `${API}auth/token`]);

const USUAL = {
  [`${API}client/config`]: {},
  [`${API}client/dynamic_config`]: {},
  [`${API}create_session`]: { session_id: 'sess-1' },
};

type Earlier = { readonly exchanges: readonly Exchange[]; readonly samplers: number; readonly samples: number };

/** Sequence numbers say how many samplers and samples the recording's clients had asked for before. */
function whatCameBefore(exchanges: readonly Exchange[]): Earlier {
  const first = (field: string) =>
    exchanges.map(({ req }) => (req as Record<string, unknown> | null)?.[field]).find((value) => value !== undefined);
  const sampled = exchanges.find(({ path }) => path === `${API}asample`);
  if (sampled) {
    const samples = Number(first('seq_id'));
    const answers = [opening(first('sampling_session_id')), ...Array.from({ length: samples }, () => SAMPLE).flat()];
    return { exchanges: answers, samplers: 1, samples };
  }
  const samplers = Number(first('sampling_session_seq_id') ?? 0);
  return { exchanges: Array.from({ length: samplers }, (_, i) => opening(`before-${i}`)), samplers, samples: 0 };
}

const answered = (path: string, res: unknown, res_type = 'application/json'): Exchange => {
  return { method: 'POST', path: API + path, query: '', req_headers: {}, req: null, status: 200, res_type, res, res_headers: {} };
};
const opening = (id: unknown) => answered('create_sampling_session', { sampling_session_id: id });
const ANY_SAMPLE = encodeSampleResponse({
  sequences: [{ tokens: Int32Array.of(1), logprobs: null, stopReason: 'stop', topk: null }],
  promptLogprobs: null,
  topkPromptLogprobs: null,
  promptCacheHitTokens: 0,
  targetPromptLogprobs: null,
  promptAltTokens: null,
});
const SAMPLE = [
  answered('asample', { request_id: 'before' }),
  answered('retrieve_future', { base64: Buffer.from(ANY_SAMPLE).toString('base64') }, 'application/x-protobuf'),
];

/** The clients that the recording's calls were made with, in the state that they were in. `values`: what opening them brings. */
async function open(
  exchanges: readonly Exchange[],
  connection: { baseUrl: string; apiKey: string },
  earlier: Earlier,
  stack: AsyncDisposableStack,
) {
  const recorded = (path: string) => exchanges.find((exchange) => exchange.path === API + path);
  const needsRest = exchanges.some((exchange) => REST.test(exchange.path)) && !recorded('create_sampling_session');
  if (needsRest) {
    const rest = stack.use(await RestClient.connect(connection));
    return { clients: { rest } as unknown as Clients, values: [] };
  }
  const beat = recorded('session_heartbeat')?.req as { session_id: string } | undefined;
  const client = stack.use(
    beat
      ? await TinkerClient.attach({ ...connection, sessionId: beat.session_id })
      : await TinkerClient.connect({ ...connection, ...sessionOptions(recorded('create_session')?.req) }),
  );
  const samplers: Sampler[] = [];
  for (let i = 0; i < earlier.samplers; i++) samplers.push(await client.sampler({ baseModel: 'before' }));
  for (let i = 0; i < earlier.samples; i++) await samplers[0]?.sampleAll({ prompt: Int32Array.of(1) });
  const sampler = () => Promise.resolve(samplers[0] ?? client.sampler({ baseModel: 'before' }));
  const clients = { client, rest: client.rest as RestClient, sampler };
  return { clients, values: recorded('create_session') ? [client.sessionId] : [] };
}

const REST =
  /^\/api\/v1\/(get_server_capabilities|training_runs|checkpoints|weights_info|copy_weights|sessions($|\/search|\/[^/]+$|\/[^/]+\/project)|samplers|billing|audit)/;

function sessionOptions(req: unknown) {
  const { tags, user_metadata, project_id, display_name } = (req ?? {}) as Record<string, never>;
  return given({ tags, userMetadata: user_metadata, projectId: project_id, displayName: display_name });
}

function requestFinding(recorded: readonly Exchange[], seen: readonly SeenRequest[]): Finding {
  const line = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
  const order = difference(recorded.map(line), seen.map(line));
  if (order) return { difference: `requests: ${order}; sent ${seen.map(line).join(', ')}` };
  const keys = difference(
    pattern(recorded.map(({ req_headers }) => req_headers[IDEMPOTENCY])),
    pattern(seen.map(({ headers }) => headers[IDEMPOTENCY]?.toString())),
  );
  if (keys) return { difference: `idempotency keys: ${keys}` };
  for (const [i, exchange] of recorded.entries()) {
    const sent = seen[i];
    if (sent === undefined) return { difference: `${line(exchange)} is missing` };
    const expected = { query: queryOf(exchange.query), headers: protocolHeaders(exchange.req_headers) };
    const actual = { query: queryOf(sent.query), headers: protocolHeaders(sent.headers) };
    const found = difference(expected, actual, EXACT) ?? bodyDifference(exchange, sent);
    if (found) return { difference: `${line(exchange)}: ${found}` };
  }
  return null;
}

const IDEMPOTENCY = 'x-idempotency-key';
const queryOf = (query: string) => [...new URLSearchParams(query)].sort();

/** The headers that a server acts on. */
function protocolHeaders(headers: Readonly<Record<string, unknown>>) {
  const isOurs = (name: string) => name.startsWith('x-tinker-') && name !== 'x-tinker-create-promise-roundtrip-time';
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isOurs(name)));
}

/** Null results of recordings say nothing: the call answers a client object there. */
function resultFinding(expected: unknown, values: readonly unknown[]): Finding {
  const own = values.filter((value) => value !== undefined);
  if (expected === null || expected === undefined || own.length === 0) return null;
  const found = difference(expected, own.length === 1 ? own[0] : own);
  return found === null ? null : { difference: found };
}
