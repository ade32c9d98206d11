import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Caller } from '../http/caller.ts';
import { resolveConnection } from '../settings.ts';
import { FakeService } from '../testing/fake-service.ts';
import { readFlags } from './service-flags.ts';

let service: FakeService;
let caller: Caller;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  service = await FakeService.start();
  caller = new Caller(resolveConnection({ baseUrl: service.url, apiKey: 'tml-key' }));
});

afterEach(async () => {
  vi.useRealTimers();
  await caller.close();
  await service.stop();
});

describe('what the service wants', () => {
  test('the protocol’s defaults where it says nothing', async () => {
    const { chunks, sampling } = await readFlags(caller);
    expect(chunks).toEqual({ maxDatums: 1024, maxBytes: 5_000_000, parallel: true, compress: false });
    expect({ ...sampling, mayCancel: sampling.mayCancel() }).toEqual({
      useFeed: false,
      mayResubmit: true,
      mayStall: true,
      mayCancel: false,
    });
  });

  test('what it says', async () => {
    const json = {
      fwdbwd_max_chunk_len: 5,
      fwdbwd_max_chunk_bytes_count: 6,
      parallel_fwdbwd_chunks: false,
      proto_compress_fwdbwd: true,
      sample_use_retrieve_futures: true,
      sample_no_retries: true,
      sample_enable_stuck_detection: false,
      billing_exception_max_pause_duration_sec: 60,
      use_pyqwest_transport: true,
    };
    service.script('client/config', { json });
    const { chunks, sampling } = await readFlags(caller);
    expect(chunks).toEqual({ maxDatums: 5, maxBytes: 6, parallel: false, compress: true });
    expect(sampling).toMatchObject({ useFeed: true, mayResubmit: false, mayStall: false });
  });

  test('whether samples may be cancelled is asked again and again; a failure keeps the last answer', async () => {
    service.script(
      'client/dynamic_config',
      { json: { refresh_interval_sec: 1, sample_cancel_enabled: false } },
      { json: { refresh_interval_sec: 20, sample_cancel_enabled: true } },
      { status: 500 },
      { json: { sample_cancel_enabled: false } },
    );
    const { sampling } = await readFlags(caller);
    const asked = async (afterMs: number, times: number) => {
      vi.advanceTimersByTime(afterMs - 1);
      await new Promise((resolve) => setImmediate(resolve));
      expect(service.to('client/dynamic_config')).toHaveLength(times - 1);
      vi.advanceTimersByTime(1);
      await vi.waitFor(() => expect(service.to('client/dynamic_config')).toHaveLength(times));
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    expect(sampling.mayCancel()).toBe(false);
    await asked(10_000, 2);
    expect(sampling.mayCancel()).toBe(true);
    await asked(20_000, 3);
    expect(sampling.mayCancel()).toBe(true);
    await asked(20_000, 4);
    expect(sampling.mayCancel()).toBe(false);
    await caller.close();
    vi.advanceTimersByTime(1_000_000);
    expect(service.to('client/dynamic_config')).toHaveLength(4);
  });

  test('are not asked for again at once when the service wishes a pause beyond all timers', async () => {
    service.script('client/dynamic_config', { json: { refresh_interval_sec: 1e10 } });
    await readFlags(caller);
    vi.advanceTimersByTime(3_600_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(service.to('client/dynamic_config')).toHaveLength(1);
    vi.advanceTimersByTime(86_400_000);
    await vi.waitFor(() => expect(service.to('client/dynamic_config')).toHaveLength(2));
  });
});
