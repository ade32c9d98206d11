import type { VectorFamily } from '../vector-file.ts';
import { binaryOf } from './compare-requests.ts';
import { callOf } from './recorded-calls.ts';
import { type Exchange, exchangeSchema } from './scripted-server.ts';

/** The version of the official client whose bodies ours speaks; those of older ones differ. */
const SPOKEN = /^0\.38\./;

/** An answered call of a recorded session with the polls for its result; `sessionId` as its client was told. */
export type SessionCall = { readonly exchanges: readonly Exchange[]; readonly sessionId: string };

/** Null where a session's exchange is no call that our client makes by itself, or one that nobody saw the end of. */
export function sessionCall(recorded: unknown, family: VectorFamily): SessionCall | null {
  const call = exchangeOf(recorded);
  if (!SPOKEN.test(call.req_headers['x-stainless-package-version'] ?? '') || call.status >= 300 || callOf(call) === null) return null;
  const all = family.cases.map(({ input }) => exchangeOf(input));
  const polls = all.filter((one) => one.path.endsWith('/retrieve_future') && requestId(one.req) === (requestId(call.res) ?? NaN));
  const isWhole = polls.every(({ req_headers }, i) => req_headers['x-tinker-request-iteration'] === String(i));
  const last = polls.at(-1);
  if (!isWhole || (requestId(call.res) !== undefined && last?.status !== 200)) return null;
  const session = all.find(({ path }) => path.endsWith('/create_session'))?.res as { readonly session_id?: string } | undefined;
  return { exchanges: [call, ...polls], sessionId: session?.session_id ?? 'none' };
}

/** Sessions do not say what type an answer was. */
function exchangeOf(recorded: unknown): Exchange {
  const exchange = exchangeSchema.parse(recorded);
  return { ...exchange, res_type: binaryOf(exchange.res) === null ? 'application/json' : 'application/x-protobuf' };
}

function requestId(body: unknown): string | undefined {
  return (body as { readonly request_id?: string } | null)?.request_id;
}
