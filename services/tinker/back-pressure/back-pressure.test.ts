import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Sampler, TinkerClient } from '../index.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { FakeService, type Reply, sampleReply } from '../testing/fake-service.ts';
import { BackPressure, DEFAULT_LIMITS, type Reservation } from './back-pressure.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** How many of so many equal submissions are let through at once. */
async function atOnce(pressure: BackPressure, count: number, reservation: Reservation): Promise<number> {
  let admitted = 0;
  for (let i = 0; i < count; i++) pressure.submission(reservation, undefined).then(() => admitted++);
  await settled();
  return admitted;
}

describe('limits', () => {
  const SMALL = { bytes: 10, of: 'sample' } as const;
  const MIB: Reservation = { bytes: 1024 * 1024, of: 'sample' };

  test('samples: 400 at once and 10 MiB', async () => {
    expect(await atOnce(new BackPressure(new FakeClock()), 500, SMALL)).toBe(400);
    expect(await atOnce(new BackPressure(new FakeClock()), 50, MIB)).toBe(10);
  });

  test('a busy service gets 10 at once and a twentieth of the bytes, for 10 s', async () => {
    const clock = new FakeClock();
    const busy = () => {
      const pressure = new BackPressure(clock);
      pressure.noteBusy();
      return pressure;
    };
    expect(await atOnce(busy(), 500, SMALL)).toBe(10);
    expect(await atOnce(busy(), 500, { bytes: 128 * 1024, of: 'sample' })).toBe(4);
    const recovered = busy();
    clock.advance(10_001);
    expect(await atOnce(recovered, 500, SMALL)).toBe(400);
  });

  test('training bodies have a limit of their own', async () => {
    const pressure = new BackPressure(new FakeClock(), { ...DEFAULT_LIMITS, trainingDispatchBytes: 100 });
    expect(await atOnce(pressure, 5, { bytes: 40, of: 'training' })).toBe(2);
    expect(await atOnce(pressure, 5, SMALL)).toBe(5);
  });

  test('an abort in the second queue leaves the first', async () => {
    const pressure = new BackPressure(new FakeClock());
    await pressure.submission({ bytes: 20 * 1024 * 1024, of: 'sample' }, undefined);
    for (let i = 0; i < 399; i++) {
      const controller = new AbortController();
      const waiting = pressure.submission(SMALL, controller.signal);
      await settled();
      controller.abort(new Error('no'));
      await expect(waiting).rejects.toThrow('no');
    }
    // All 400 places but one are free again: only the bytes hold this one back.
    const release = await Promise.race([pressure.submission(SMALL, undefined), settled().then(() => null)]);
    expect(release).toBeNull();
  });
});

describe('a client', () => {
  let service: FakeService;
  let client: TinkerClient;
  let sampler: Sampler;

  const request = { prompt: Int32Array.of(36, 32), maxTokens: 5, temperature: 1, stopTokens: [10] };

  async function connect(config: Record<string, unknown>, dynamic: Record<string, unknown> = {}): Promise<void> {
    service.script('client/config', { json: config });
    service.script('client/dynamic_config', { json: dynamic });
    client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
    sampler = await client.sampler({ baseModel: 'm' });
  }

  const arrived = async (path: string, count: number) => {
    for (let i = 0; i < 400 && service.to(path).length < count; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(service.to(path)).toHaveLength(count);
  };

  beforeEach(async () => {
    service = await FakeService.start();
  });

  afterEach(async () => {
    await client.close();
    await service.stop();
  });

  test('has no more samples under way than the service wants; an aborted one frees its place and is cancelled', async () => {
    await connect({ sample_max_concurrent_requests: 1 }, { sample_cancel_enabled: true });
    service.script('retrieve_future', 'hang');
    const controller = new AbortController();
    const first = sampler.sample({ ...request, signal: controller.signal });
    await arrived('retrieve_future', 1);
    const second = sampler.sample(request);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(service.to('asample')).toHaveLength(1);
    const reason = new Error('the trial ended');
    controller.abort(reason);
    await expect(first).rejects.toBe(reason);
    expect((await second).tokens).toEqual(Int32Array.of(7, 10));
    await arrived('cancel_future', 1);
    expect(service.to('cancel_future')[0]?.json).toEqual({ request_id: 'req-0' });
  });

  test('cancels a sample that was abandoned before its submission was answered, as soon as it is', async () => {
    await connect({}, { sample_cancel_enabled: true });
    service.script('asample', { json: { request_id: 'late' }, delayMs: 150 });
    const controller = new AbortController();
    const sampling = sampler.sample({ ...request, signal: controller.signal });
    await arrived('asample', 1);
    controller.abort(new Error('no'));
    await expect(sampling).rejects.toThrow('no');
    expect(service.to('cancel_future')).toHaveLength(0);
    await arrived('cancel_future', 1);
    expect(service.to('cancel_future')[0]?.json).toEqual({ request_id: 'late' });
    expect(service.to('retrieve_future')).toHaveLength(0);
  });

  test('cancels nothing where the service does not allow it', async () => {
    await connect({});
    service.script('retrieve_future', 'hang');
    const controller = new AbortController();
    const sampling = sampler.sample({ ...request, signal: controller.signal });
    await arrived('retrieve_future', 1);
    controller.abort(new Error('no'));
    await expect(sampling).rejects.toThrow('no');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(service.to('cancel_future')).toHaveLength(0);
  });

  test('fetches large results one after the other where they do not fit together; an aborted one makes way', async () => {
    await connect({ inflight_response_bytes_semaphore_size: 100 });
    const fetches = () => service.to('retrieve_future').filter(({ json }) => json.allow_metadata_only === false).length;
    const result = sampleReply();
    service.usually('retrieve_future', ({ json }): Reply => {
      if (json.allow_metadata_only === true) return { json: { status: 'complete_metadata', response_payload_size: 60 } };
      return fetches() === 1 ? 'hang' : result;
    });
    const controller = new AbortController();
    const first = sampler.sample({ ...request, signal: controller.signal });
    await arrived('retrieve_future', 2);
    const second = sampler.sample(request);
    await arrived('retrieve_future', 3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(fetches()).toBe(1);
    controller.abort(new Error('no'));
    await expect(first).rejects.toThrow('no');
    expect((await second).tokens).toEqual(Int32Array.of(7, 10));
    expect(fetches()).toBe(2);
  });
});
