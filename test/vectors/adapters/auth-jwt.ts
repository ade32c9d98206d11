import { z } from 'zod';
import { TinkerClient } from '../../../services/tinker/index.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { requestDifference } from '../tinker/compare-requests.ts';
import { type Exchange, exchangeSchema, startScriptedServer } from '../tinker/scripted-server.ts';

const caseSchema = z.looseObject({ exchanges: z.array(exchangeSchema).min(1) });

const KEY = 'tml-key';
const CONFIG = '/api/v1/client/config';
const SAMPLING = '/api/v1/create_sampling_session';

export const authJwt: FamilyAdapter = { family: 'auth_jwt', kinds: { '': (input: unknown) => check(caseSchema.parse(input).exchanges) } };

async function check(recorded: readonly Exchange[]): Promise<Finding> {
  // A recording may begin with the last poll of the client before; or after its own client's start, which is then made up.
  const start = recorded.findIndex(({ path }) => path === CONFIG);
  const exchanges = withTokens(start < 0 ? recorded : recorded.slice(start));
  const opened = exchanges.filter(({ path }) => path === SAMPLING).map(({ req }) => samplingSchema.parse(req));
  const before = start < 0 ? (opened[0]?.sampling_session_seq_id ?? 0) : 0;
  const prelude = start < 0 ? withTokens(clientStart(before)) : [];
  const usual = { '/api/v1/client/dynamic_config': {}, '/api/v1/create_session': { session_id: opened[0]?.session_id ?? 'recorded' } };
  await using server = await startScriptedServer([...prelude, ...exchanges], { usual });
  await using client = await TinkerClient.connect({ baseUrl: server.url, apiKey: KEY });
  for (let i = 0; i < before; i++) await client.sampler({ baseModel: 'earlier' });
  const mark = start < 0 ? server.seen.length : 0;
  for (const { base_model } of new Map(opened.map((one) => [one.sampling_session_seq_id, one])).values()) {
    await client.sampler({ baseModel: base_model });
  }
  const seen = server.seen.slice(mark);
  const nameOfKey = (key: string) => (key === KEY ? '<key>' : key.startsWith('eyJ') ? '<jwt>' : key);
  const found = requestDifference(exchanges, seen, { nameOfKey, pauses: false });
  if (found !== null) return { difference: found };
  const replayed = new Set(seen.filter(({ path }) => path === SAMPLING).map(({ headers }) => headers['x-api-key']));
  const isReplaced = exchanges.some(({ status }) => status === 401);
  return isReplaced && replayed.size < 2 ? { difference: 'the refused token was sent again' } : null;
}

const samplingSchema = z.looseObject({ session_id: z.string(), sampling_session_seq_id: z.number(), base_model: z.string() });

/** What a client with tokens was answered before the recording, with so many samplers. */
function clientStart(samplers: number): Exchange[] {
  const answered = (path: string, res: unknown): Exchange => ({
    method: 'POST',
    path,
    query: '',
    req_headers: {},
    req: {},
    status: 200,
    res,
    res_headers: {},
  });
  const sessions = Array.from({ length: samplers }, (_, i) => answered(SAMPLING, { sampling_session_id: `earlier-${i}` }));
  return [answered(CONFIG, { pjwt_auth_enabled: true }), answered('/api/v1/auth/token', { jwt: '<jwt>' }), ...sessions];
}

let tokens = 0;

/** The recorder's mask stands for a token that lives for an hour, each for another one. */
function withTokens(exchanges: readonly Exchange[]): Exchange[] {
  return exchanges.map((exchange) => {
    const isToken = typeof exchange.res === 'object' && exchange.res !== null && 'jwt' in exchange.res;
    return isToken ? { ...exchange, res: { jwt: freshToken() } } : exchange;
  });
}

function freshToken(): string {
  const iat = Math.floor(Date.now() / 1000);
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part({ sub: `user-${tokens++}`, iat, exp: iat + 3600 })}.signature`;
}
