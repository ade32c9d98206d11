import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { TinkerClient } from '../../../services/tinker/index.ts';
import { FakeClock } from '../../../services/tinker/testing/fake-clock.ts';
import { lossShape, wholeSampleShape } from '../../tinker-drive/sdk-shape.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, SINGLE } from '../same.ts';
import { requestDifference } from '../tinker/compare-requests.ts';
import { runLossCall, runSamples } from '../tinker/drive-client.ts';
import { expectedClass } from '../tinker/outcomes.ts';
import { type Exchange, exchangeSchema, type ScriptedServer, type SeenRequest, startScriptedServer } from '../tinker/scripted-server.ts';

const caseSchema = z.looseObject({
  client_config: z.record(z.string(), z.unknown()),
  dynamic_config: z.record(z.string(), z.unknown()),
  exchanges: z.array(exchangeSchema).min(1),
  seconds: z.number().optional(),
  result: z.unknown().optional(),
  error: z.string().optional(),
});
type Recorded = z.infer<typeof caseSchema>;

const CANCELLED = 'cancelled';
/** How long after the result a last acknowledgement may come. */
const SETTLING_MS = 2000;
const RULES = { nameOfKey: () => '<key>', pauses: true };

export const pollAndRetry: FamilyAdapter = { family: 'poll_and_retry', kinds: { '': (input: unknown) => check(caseSchema.parse(input)) } };

async function check(recorded: Recorded): Promise<Finding> {
  const { exchanges, client_config, dynamic_config, result } = recorded;
  const first = firstOf(exchanges);
  const usual = {
    '/api/v1/client/config': client_config,
    '/api/v1/client/dynamic_config': dynamic_config,
    '/api/v1/create_session': { session_id: 'recorded' },
    '/api/v1/create_sampling_session': { sampling_session_id: samplingSessionOf(first) },
    '/api/v1/cancel_future': {},
  };
  // On this clock only pauses take time: they are compared, however busy the machine is.
  const clock = new FakeClock();
  await using server = await startScriptedServer(exchanges, { usual, repeatLast: result === CANCELLED, nowMs: clock.nowMs });
  await using client = await TinkerClient.connect({ baseUrl: server.url, apiKey: 'tml-key', clock });
  // The server must outlive the check.
  return result === CANCELLED ? await checkCancelled(client, server, exchanges) : await checkCalls(client, server, recorded, clock);
}

async function checkCalls(client: TinkerClient, server: ScriptedServer, recorded: Recorded, clock: FakeClock): Promise<Finding> {
  const { exchanges, result, error } = recorded;
  const first = firstOf(exchanges);
  const isSample = first.path.endsWith('/asample');
  const sampler = isSample ? await client.sampler({ baseModel: 'recorded' }) : null;
  const mark = server.seen.length;
  const startMs = clock.nowMs();
  const outcome = await work(async () => {
    if (sampler === null) return lossShape(await runLossCall(client, first));
    const samples = await runSamples(sampler, first, Array.isArray(result) ? result.length : 1);
    return Array.isArray(result) ? samples.map(wholeSampleShape) : wholeSampleShape(samples[0] as never);
  });
  const seconds = (clock.nowMs() - startMs) / 1000;
  for (let waited = 0; server.remaining().length > 0 && waited < SETTLING_MS; waited += 20) await sleep(20);
  const requests = requestDifference(exchanges, server.seen.slice(mark), RULES);
  if (requests !== null) return { difference: requests };
  const last = exchanges.at(-1) ?? first;
  const found =
    (error === undefined ? resultDifference(result, outcome) : errorDifference(last, outcome)) ?? secondsDifference(recorded, seconds);
  return found === null ? null : { difference: found };
}

/** The recording leaves out most polls and what followed: they are compared as far as they come in a row, then the future is cancelled. */
async function checkCancelled(client: TinkerClient, server: ScriptedServer, exchanges: readonly Exchange[]): Promise<Finding> {
  const first = firstOf(exchanges);
  const inRow = exchanges.filter(({ req_headers }, i) => i === 0 || req_headers['x-tinker-request-iteration'] === String(i - 1));
  const sampler = await client.sampler({ baseModel: 'recorded' });
  const mark = server.seen.length;
  const seen = () => server.seen.slice(mark);
  const abandon = new AbortController();
  const sampling = work(() => runSamples(sampler, first, 1, abandon.signal));
  const arrived = async (isThere: (requests: readonly SeenRequest[]) => boolean) => {
    for (let waited = 0; !isThere(seen()) && waited < SETTLING_MS; waited += 5) await sleep(5);
  };
  await arrived((requests) => requests.length >= inRow.length);
  abandon.abort(new Error('abandoned'));
  const outcome = await sampling;
  await arrived((requests) => requests.some(isCancel));
  const polls = seen().filter((request) => !isCancel(request));
  const requests = requestDifference(inRow, polls.slice(0, inRow.length), RULES);
  if (requests !== null) return { difference: requests };
  const cancelled = seen().find(isCancel)?.json;
  const expected = { request_id: (first.res as { request_id: string }).request_id };
  const found =
    difference(expected, cancelled, undefined, 'cancel_future') ?? difference('abandoned', messageOf(outcome), undefined, 'error');
  return found === null ? null : { difference: found };
}

function firstOf(exchanges: readonly Exchange[]): Exchange {
  const [first] = exchanges;
  if (first === undefined) throw new Error('nothing was recorded');
  return first;
}

const isCancel = ({ path }: SeenRequest) => path.endsWith('/cancel_future');

type Outcome = { readonly result: unknown } | { readonly error: unknown };

async function work(run: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { result: await run() };
  } catch (error) {
    return { error };
  }
}

function resultDifference(expected: unknown, outcome: Outcome): string | null {
  return 'error' in outcome ? `our client failed: ${outcome.error}` : difference(expected, outcome.result, SINGLE);
}

/** What older servers send as JSON is read here and refused by the official client: then only what we make of it counts. */
function errorDifference(last: Exchange, outcome: Outcome): string | null {
  const isOlder = last.status === 200 && typeof last.res === 'object' && last.res !== null && 'loss_fn_outputs' in last.res;
  if ('error' in outcome) return difference(expectedClass(last), nameOf(outcome.error), undefined, 'error');
  return isOlder ? difference(last.res, outcome.result, SINGLE) : 'our client did not fail';
}

/** What the recorder took for itself. */
const START_S = 0.5;

/** As generous as with the single pauses; those after a 402 are a person's here. */
function secondsDifference({ exchanges, seconds }: Recorded, ours: number): string | null {
  if (seconds === undefined || exchanges.some(({ status }) => status === 402)) return null;
  const isAlike = ours >= 0.5 * (seconds - START_S) && ours <= 2 * seconds + 1;
  return isAlike ? null : `seconds: expected about ${seconds}, got ${ours.toFixed(2)}`;
}

const nameOf = (error: unknown) => (error instanceof Error ? error.name : String(error));
const messageOf = (outcome: Outcome) => ('error' in outcome && outcome.error instanceof Error ? outcome.error.message : null);

/** Of a first recorded request that samples; others need none. */
function samplingSessionOf({ req }: Exchange): string {
  const isSample = typeof req === 'object' && req !== null && 'sampling_session_id' in req;
  return isSample ? String(req.sampling_session_id) : 'none';
}
