import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SessionLost, TinkerClient, type WaitReport } from '../index.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { FakeService } from '../testing/fake-service.ts';

let service: FakeService;
let client: TinkerClient;
let clock: FakeClock;
let waits: WaitReport[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  service = await FakeService.start();
  clock = new FakeClock();
  waits = [];
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', clock, onWait: (report) => waits.push(report) });
});

afterEach(async () => {
  vi.useRealTimers();
  await client.close();
  await service.stop();
});

async function beat(): Promise<void> {
  const { length } = service.to('session_heartbeat');
  clock.advance(10_000);
  vi.advanceTimersByTime(10_000);
  await vi.waitFor(() => expect(service.to('session_heartbeat').length).toBeGreaterThan(length));
  await new Promise((resolve) => setTimeout(resolve, 20));
}

describe('heartbeats', () => {
  test('that fail for two minutes are reported, until one succeeds', async () => {
    service.usually('session_heartbeat', { status: 503 });
    for (let i = 0; i < 11; i++) await beat();
    expect(waits).toEqual([]);
    await beat();
    expect(waits).toMatchObject([{ call: 'session_heartbeat', waitedMs: 120_000, reason: expect.stringContaining('sess') }]);
    service.usually('session_heartbeat', { json: {} });
    await beat();
    service.usually('session_heartbeat', { status: 503 });
    await beat();
    expect(waits).toHaveLength(1);
  });

  test('that the service answers with 410 end the session, here another process’s', async () => {
    client.training('m', { nextSeqId: 1, sessionId: 'older' });
    service.usually('session_heartbeat', ({ json }) => (json.session_id === 'older' ? { status: 410 } : { json: {} }));
    await beat();
    expect(() => client.training('m', { nextSeqId: 1, sessionId: 'older' })).toThrow(SessionLost);
    expect(client.training('m', { nextSeqId: 1 }).nextSeqId).toBe(1);
    service.seen.length = 0;
    await beat();
    expect(service.to('session_heartbeat').map(({ json }) => json.session_id)).toEqual(['sess']);
  });

  test('that the service does not have are none of anybody’s business', async () => {
    service.usually('session_heartbeat', { status: 404 });
    for (let i = 0; i < 15; i++) await beat();
    expect(waits).toEqual([]);
    expect(client.training('m', { nextSeqId: 1 }).nextSeqId).toBe(1);
  });

  test('of a session that was released end', async () => {
    client.training('m', { nextSeqId: 1, sessionId: 'older' });
    await beat();
    expect(service.to('session_heartbeat')).toHaveLength(2);
    client.release('older');
    client.release(client.sessionId);
    service.seen.length = 0;
    await beat();
    expect(service.to('session_heartbeat').map(({ json }) => json.session_id)).toEqual(['sess']);
  });

  test('end with a client that could not join a session', async () => {
    service.script('session_heartbeat', { status: 410 });
    const joining = TinkerClient.attach({ baseUrl: service.url, apiKey: 'tml-key', sessionId: 'gone' });
    await expect(joining).rejects.toThrow(SessionLost);
    await client.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
