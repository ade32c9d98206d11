import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceFixture } from '../testing/service-fixture.ts';

let fixture: ServiceFixture;
let session: string;
let model: string;
beforeEach(async () => {
  fixture = new ServiceFixture();
  ({ session, model } = await fixture.openSession());
});
afterEach(() => fixture.remove());

const SAMPLE = { seq_id: 0, prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] }, sampling_params: { max_tokens: 1 } };

describe('sessions', () => {
  const create = async (now: string, settings: object): Promise<string> => {
    fixture.now = now;
    return String((await fixture.ask('POST', 'create_session', settings)).session_id);
  };
  const search = async (query: object): Promise<unknown[]> =>
    ((await fixture.ask('POST', 'sessions/search', query)).sessions as { session_id: string }[]).map(({ session_id }) => session_id);

  it('are listed newest first, shown with what is in them, and found by what is known of them', async () => {
    const named = await create('2026-01-02T00:00:00.000Z', { display_name: 'Night run two', user_metadata: { team: 'a' } });
    const moved = await create('2026-01-03T00:00:00.000Z', { project_id: 'p1' });
    await fixture.ask('PUT', `sessions/${moved}/project`, { project_id: 'p2' });
    await fixture.ask('POST', `sessions/${named}/finish`, { reason: { type: 'errored' }, detail: null });
    fixture.restart();
    expect((await fixture.ask('GET', 'sessions')).sessions).toEqual([moved, named, session]);
    expect((await fixture.ask('GET', 'sessions?limit=1&offset=1')).sessions).toEqual([named]);
    expect(await fixture.ask('GET', `sessions/${named}`)).toMatchObject({ display_name: 'Night run two', user_metadata: { team: 'a' } });
    expect(await fixture.ask('GET', `sessions/${session}`)).toMatchObject({ training_run_ids: [model], sampler_ids: [] });
    const queries: [object, string[]][] = [
      [{}, [moved, named, session]],
      [{ session_id: session }, [session]],
      [{ display_name: 'RUN night' }, [named]],
      [{ display_name: 'day' }, []],
      [{ session_id: moved, display_name: 'night' }, [moved, named]],
      [{ project_ids: ['p2'] }, [moved]],
      [{ user_metadata: { team: 'a' } }, [named]],
      [{ user_metadata: { team: 'b' } }, []],
      [{ statuses: [{ type: 'active' }] }, [moved, session]],
      [{ statuses: [{ type: 'client_finished', reasons: ['errored'] }] }, [named]],
      [{ statuses: [{ type: 'client_finished', reasons: ['success'] }] }, []],
    ];
    for (const [query, found] of queries) expect([query, await search(query)]).toEqual([query, found]);
  });

  it('are found page by page', async () => {
    const others = [await create('2026-01-01T00:00:00.000Z', {}), await create('2026-01-02T00:00:00.000Z', {})];
    const seen: unknown[] = [];
    let cursor: unknown = null;
    do {
      const page = await fixture.ask('POST', 'sessions/search', { limit: 1, cursor });
      seen.push(...(page.sessions as { session_id: string }[]).map(({ session_id }) => session_id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toHaveLength(3);
    expect(new Set(seen)).toEqual(new Set([session, ...others]));
    expect(seen[0]).toBe(others[1]);
  });

  it('end after a week without a sign of life of their client, and are forgotten a week later', async () => {
    const beat = async () => (await fixture.send('POST', 'session_heartbeat', { session_id: session })).status;
    const at = (day: number) => {
      fixture.now = `2026-01-${String(day).padStart(2, '0')}T01:00:00.000Z`;
      fixture.service.sweepSessions();
    };
    const { sampling_session_id: sampler } = await fixture.ask('POST', 'create_sampling_session', {
      session_id: session,
      sampling_session_seq_id: 0,
      base_model: 'base',
    });
    at(7);
    expect(await beat()).toBe(200);
    fixture.restart();
    at(13);
    expect(await search({ statuses: [{ type: 'active' }] })).toEqual([session]);
    at(15);
    expect(await search({ statuses: [{ type: 'client_finished', reasons: ['idle'] }] })).toEqual([session]);
    await fixture.service.runs.get(model).unload();
    // A client that comes back in time finds its session again.
    expect(await beat()).toBe(200);
    fixture.restart();
    expect(await search({ statuses: [{ type: 'active' }] })).toEqual([session]);
    at(23);
    at(29);
    expect(await search({})).toEqual([session]);
    at(31);
    expect(await search({})).toEqual([]);
    expect(await beat()).toBe(404);
    expect((await fixture.send('POST', 'asample', { ...SAMPLE, sampling_session_id: sampler })).status).toBe(404);
    fixture.restart();
    expect(await search({})).toEqual([]);
    expect(fixture.service.runs.find(model)).not.toBeNull();
  });

  it('go on while their models train or samples are drawn', async () => {
    const { sampling_session_id: sampler } = await fixture.ask('POST', 'create_sampling_session', {
      session_id: session,
      sampling_session_seq_id: 0,
      base_model: 'base',
    });
    fixture.now = '2026-01-07T00:00:00.000Z';
    await fixture.call('save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false });
    fixture.now = '2026-01-13T00:00:00.000Z';
    fixture.service.sweepSessions();
    await fixture.ask('POST', 'asample', { ...SAMPLE, sampling_session_id: sampler });
    fixture.now = '2026-01-19T00:00:00.000Z';
    fixture.service.sweepSessions();
    expect(await search({ statuses: [{ type: 'active' }] })).toEqual([session]);
    fixture.now = '2026-01-21T00:00:00.000Z';
    fixture.service.sweepSessions();
    expect(await search({ statuses: [{ type: 'active' }] })).toEqual([]);
  });
});
