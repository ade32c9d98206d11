import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TinkerClient, TinkerError, type TrainingClient, type WaitReport } from './index.ts';
import { FakeClock } from './testing/fake-clock.ts';
import { FakeService, type Reply } from './testing/fake-service.ts';

/** Every fault of a service against every kind of call: what the caller hears, and how often the service was asked. */

const PROMPT = Int32Array.of(36, 32);
const LOSS_ROWS = { modelInput: PROMPT, targetTokens: PROMPT, weights: Float32Array.of(1, 1) };
/** No error: the call survived. */
const SURVIVED = 'survived';

type Kind = {
  readonly name: string;
  readonly submit: string;
  readonly hasFuture: boolean;
  /** What a 404 or 410 comes to: at the submission, and when the result is asked for. */
  readonly lostAtSubmit: string;
  readonly lostAtPoll: string;
  /** What a result of the category `server` comes to. */
  readonly failed: string;
  readonly run: (client: TinkerClient, training: TrainingClient) => Promise<unknown>;
};

const training = { hasFuture: true, lostAtSubmit: 'TrainingStateUnknown', lostAtPoll: 'TrainingStateUnknown', failed: 'ServiceFailed' };
const sampling = { submit: 'asample', hasFuture: true, lostAtSubmit: SURVIVED, lostAtPoll: SURVIVED, failed: 'ServiceFailed' };

const KINDS: readonly Kind[] = [
  { ...training, name: 'forward', submit: 'forward_backward', run: (_, model) => model.forward([LOSS_ROWS], 'cross_entropy') },
  {
    ...training,
    name: 'forward_backward',
    submit: 'forward_backward',
    failed: 'TrainingStateUnknown',
    run: (_, model) => model.forwardBackward([LOSS_ROWS], 'cross_entropy'),
  },
  {
    ...training,
    name: 'optim_step',
    submit: 'optim_step',
    failed: 'TrainingStateUnknown',
    run: (_, model) => model.optimStep({ learningRate: 1e-3 }),
  },
  { ...training, name: 'save', submit: 'save_weights', run: (_, model) => model.saveState('one') },
  { ...sampling, name: 'sample', run: async (client) => (await client.sampler({ baseModel: 'm' })).sample(SAMPLE) },
  { ...sampling, name: 'score', run: async (client) => (await client.sampler({ baseModel: 'm' })).sampleAll({ ...SCORE }) },
  {
    name: 'create_model',
    submit: 'create_model',
    hasFuture: true,
    lostAtSubmit: 'SessionLost',
    lostAtPoll: 'SessionLost',
    failed: 'ServiceFailed',
    run: (client) => client.createModel({ baseModel: 'm', rank: 4 }),
  },
  {
    name: 'REST get',
    submit: 'training_runs/run/checkpoints',
    hasFuture: false,
    lostAtSubmit: 'BadRequest',
    lostAtPoll: SURVIVED,
    failed: SURVIVED,
    run: (client) => client.checkpoints.list('run'),
  },
];
const SAMPLE = { prompt: PROMPT, maxTokens: 5, temperature: 1, stopTokens: [10] };
const SCORE = { prompt: PROMPT, maxTokens: 1, includePromptLogprobs: true };

const detail = { detail: 'because' };
const pending = { type: 'try_again', request_id: 'x', queue_state: 'paused_capacity', queue_state_reason: 'full' };
const of = (status: number, headers: Record<string, string> = {}): Reply => ({ status, json: detail, headers });
const times = (count: number, reply: Reply): Reply[] => Array.from({ length: count }, () => reply);
const emptyBadRequest: Reply = { status: 400 };

type Fault = {
  readonly name: string;
  readonly replies: readonly Reply[];
  readonly outcome: string | ((kind: Kind) => string);
  /** Requests to the faulty path; absent: one more than the replies when it survived, else as many. */
  readonly requests?: number;
  readonly leastPauseMs?: number;
  readonly error?: Readonly<Record<string, unknown>>;
};

const COMMON: readonly Fault[] = [
  { name: '401', replies: [of(401)], outcome: 'CredentialRefused' },
  { name: '402', replies: [of(402)], outcome: 'BillingPaused', error: { status: 402 } },
  {
    name: '402 with Retry-After',
    replies: [of(402, { 'retry-after': '60' })],
    outcome: 'BillingPaused',
    error: { retryAfterMs: 60_000 },
  },
  { name: '408', replies: [of(408)], outcome: SURVIVED },
  { name: '429 with Retry-After: 120', replies: [of(429, { 'retry-after': '120' })], outcome: SURVIVED, leastPauseMs: 120_000 },
  { name: '503 with Retry-After: 7200', replies: times(2, of(503, { 'retry-after': '7200' })), outcome: SURVIVED, leastPauseMs: 7_200_000 },
  { name: '500 twice', replies: times(2, of(500)), outcome: SURVIVED },
  { name: '501', replies: [of(501)], outcome: 'BadRequest' },
  { name: '422', replies: [of(422)], outcome: 'BadRequest', error: { status: 422, detail: 'because' } },
  { name: 'an empty 400', replies: [emptyBadRequest], outcome: SURVIVED },
  { name: 'empty 400s without end', replies: times(40, emptyBadRequest), outcome: 'RetryLater', requests: 17 },
  { name: 'a dropped connection', replies: ['drop'], outcome: SURVIVED },
  {
    name: '500 without end',
    replies: times(200, of(500, { 'x-request-id': 'http-1' })),
    outcome: 'RetryLater',
    requests: -1,
    error: { status: 500 },
  },
];

const AT_SUBMIT: readonly Fault[] = [
  ...COMMON,
  { name: '400', replies: [of(400)], outcome: 'BadRequest' },
  { name: '410', replies: [of(410)], outcome: ({ lostAtSubmit }) => lostAtSubmit },
  { name: '503 not to be tried again soon', replies: [of(503, { 'x-should-retry': 'false' })], outcome: SURVIVED, leastPauseMs: 1000 },
];

const AT_POLL: readonly Fault[] = [
  ...COMMON,
  { name: '400 three times', replies: times(3, of(400)), outcome: SURVIVED },
  { name: '400 four times', replies: times(4, of(400)), outcome: 'BadRequest' },
  { name: '408 with a queue state', replies: [{ status: 408, json: pending }], outcome: SURVIVED },
  { name: 'pending', replies: times(5, { json: pending }), outcome: SURVIVED },
  {
    name: 'only the size of the result',
    replies: [{ json: { status: 'complete_metadata', response_payload_size: 1e9 } }],
    outcome: SURVIVED,
  },
  { name: '410', replies: [of(410)], outcome: ({ lostAtPoll }) => lostAtPoll },
  { name: 'failed by the user', replies: [{ json: { error: 'no', category: 'user' } }], outcome: 'BadRequest' },
  { name: 'failed by the service', replies: [{ json: { error: 'no', category: 'server' } }], outcome: ({ failed }) => failed },
];

let service: FakeService;
let client: TinkerClient;
let clock: FakeClock;
let waits: WaitReport[];

beforeEach(async () => {
  service = await FakeService.start();
  clock = new FakeClock();
  waits = [];
  const onWait = (report: WaitReport) => waits.push(report);
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', clock, onWait });
  service.usually('training_runs/run/checkpoints', { json: { checkpoints: [] } });
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

async function meet(kind: Kind, path: string, fault: Fault): Promise<void> {
  service.script(path, ...fault.replies);
  const outcome = await kind.run(client, client.training('m', { nextSeqId: 1 })).then(
    () => SURVIVED,
    (error: unknown) => error,
  );
  const expected = typeof fault.outcome === 'string' ? fault.outcome : fault.outcome(kind);
  expect(outcome instanceof TinkerError ? outcome.name : outcome).toBe(expected);
  const requests = fault.requests ?? fault.replies.length + (expected === SURVIVED ? 1 : 0);
  if (requests >= 0) expect(service.to(path)).toHaveLength(requests);
  if (fault.leastPauseMs !== undefined) expect(Math.max(...clock.pausesMs)).toBeGreaterThanOrEqual(fault.leastPauseMs);
  if (fault.error !== undefined) expect(outcome).toMatchObject(fault.error);
  if (path === 'retrieve_future' && outcome instanceof TinkerError) expect(outcome.requestId).toBe('req-0');
}

describe.each(KINDS)('$name, at its submission', (kind) => {
  test.each(AT_SUBMIT)('$name', (fault) => meet(kind, kind.submit, fault));
});

describe.each(KINDS.filter(({ hasFuture }) => hasFuture))('$name, when its result is asked for', (kind) => {
  test.each(AT_POLL)('$name', async (fault) => {
    await meet(kind, 'retrieve_future', fault);
    const isResubmitted = fault.name === '410' && kind.submit === 'asample';
    expect(service.to(kind.submit)).toHaveLength(isResubmitted ? 2 : 1);
  });

  test('pending for two hours: shown with its queue, not failed', async () => {
    const aPoll: Reply = () => {
      clock.advance(45_000);
      return { json: pending };
    };
    service.script('retrieve_future', ...times(160, aPoll));
    await kind.run(client, client.training('m', { nextSeqId: 1 }));
    const last = waits.at(-1);
    expect(last).toMatchObject({ queueState: 'paused_capacity', reason: 'full' });
    expect(last?.waitedMs).toBeGreaterThan(7_000_000);
    expect(service.to(kind.submit)).toHaveLength(1);
  });

  test('pending for more than a day while nothing completes', async () => {
    const hour: Reply = () => {
      clock.advance(3_600_000);
      return { json: pending };
    };
    service.script('retrieve_future', ...times(30, hour));
    const failing = kind.run(client, client.training('m', { nextSeqId: 1 }));
    await expect(failing).rejects.toMatchObject({ name: 'RetryLater', queueState: 'paused_capacity', requestId: 'req-0' });
  });
});

describe('the pauses the service asks for', () => {
  test.each([
    ['seconds', { 'retry-after': '120' }, 120_000],
    ['milliseconds', { 'retry-after-ms': '150000' }, 150_000],
    ['a date', { 'retry-after': new Date(Date.UTC(2030, 0) + 180_000).toUTCString() }, 180_000],
  ])('%s', async (_, headers, pauseMs) => {
    service.script('optim_step', of(429, headers));
    await client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
    expect(clock.pausesMs).toEqual([pauseMs]);
  });

  test('one of more than a day is for the caller', async () => {
    service.script('optim_step', of(429, { 'retry-after': '100000' }));
    const failing = client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
    await expect(failing).rejects.toMatchObject({ name: 'RetryLater', retryAfterMs: 100_000_000, status: 429 });
  });
});

describe('after a payment', () => {
  const PAID = { status: 402, json: detail };

  test('the same future is asked for again, here or by another process', async () => {
    const pendingCall = await client.training('m', { nextSeqId: 1 }).submitOptimStep({ learningRate: 1e-3 });
    service.script('retrieve_future', PAID, PAID);
    await expect(pendingCall.result()).rejects.toMatchObject({ name: 'BillingPaused', requestId: 'req-0' });
    const saved = JSON.parse(JSON.stringify(pendingCall.saved));
    await expect(client.training('m', { nextSeqId: 2 }).resume(saved).result()).rejects.toMatchObject({ name: 'BillingPaused' });
    expect(await pendingCall.result()).toMatchObject({ metrics: { 'grad_norm:max': 0.5 } });
    expect(service.to('optim_step')).toHaveLength(1);
  });

  test('a sample that was refused keeps its number', async () => {
    const sampler = await client.sampler({ baseModel: 'm' });
    service.script('asample', PAID);
    await expect(sampler.sample(SAMPLE)).rejects.toMatchObject({ name: 'BillingPaused' });
    await sampler.sample(SAMPLE);
    await sampler.sample(SAMPLE);
    expect(service.to('asample').map(({ json }) => json.seq_id)).toEqual([0, 0, 1]);
  });
});

test('an empty 400 is followed over a fresh connection', async () => {
  await client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
  service.script('optim_step', emptyBadRequest);
  await client.training('m', { nextSeqId: 2 }).optimStep({ learningRate: 1e-3 });
  const connections = service.seen.map(({ connection }) => connection);
  const again = service.seen.findLastIndex(({ path }) => path === 'optim_step');
  expect(connections.slice(0, again)).not.toContain(connections[again]);
});

test('a poll that nobody answers is made again', async () => {
  await using hasty = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', requestTimeoutMs: 300 });
  service.script('retrieve_future', 'hang');
  await hasty.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
  expect(service.to('retrieve_future').map(({ headers }) => headers['x-tinker-request-iteration'])).toEqual(['0', '1']);
});

describe('a service that holds its polls for longer than the client does', () => {
  const hurried = { apiKey: 'tml-key', requestTimeoutMs: 300, noProgressMs: 500 };

  test('is waited for while it answers other calls', async () => {
    await using hasty = await TinkerClient.connect({ ...hurried, baseUrl: service.url });
    service.script('retrieve_future', 'hang', 'hang', 'hang', 'hang');
    const others = setInterval(() => hasty.capabilities().catch(() => {}), 100);
    try {
      await hasty.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
    } finally {
      clearInterval(others);
    }
    expect(service.to('retrieve_future')).toHaveLength(5);
  });

  test('is given up when it answers nothing at all', async () => {
    await using hasty = await TinkerClient.connect({ ...hurried, baseUrl: service.url });
    service.usually('retrieve_future', 'hang');
    const step = hasty.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
    await expect(step).rejects.toMatchObject({ name: 'RetryLater', requestId: expect.any(String) });
  });
});

test('a promise that comes late is waited for, not asked for twice', async () => {
  service.script('optim_step', { json: { request_id: 'late' }, delayMs: 200 });
  service.script('retrieve_future', { json: { metrics: {} } });
  await client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
  expect(service.to('optim_step')).toHaveLength(1);
  expect(Number(service.to('retrieve_future')[0]?.headers['x-tinker-create-promise-roundtrip-time'])).toBeGreaterThanOrEqual(0);
});

test('a promise that was given before is taken: the repeated number brings the first future', async () => {
  const first: Reply = { json: { request_id: 'the-first' } };
  service.script('optim_step', 'drop', first);
  service.script('retrieve_future', ({ json }) => ({ json: json.request_id === 'the-first' ? { metrics: { 'step:max': 7 } } : {} }));
  expect(await client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 })).toMatchObject({ metrics: { 'step:max': 7 } });
  expect(service.to('optim_step').map(({ json }) => json.seq_id)).toEqual([1, 1]);
});
