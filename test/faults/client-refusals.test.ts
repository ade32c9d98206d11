import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BadRequest, CredentialRefused, RetryLater } from '../../services/tinker/index.ts';
import { TrainerFixture } from '../trainer-fixture.ts';
import { ALL, type Desk, FROM_STATE, failure, named, openDesk, pollFailure, TRAINING, withFuture } from './client-calls.ts';

/** Refusals and services that do not come back: the client stops after no more requests than make sense. */

let fixture: TrainerFixture;
let desk: Desk;
beforeAll(async () => {
  fixture = await TrainerFixture.start({ faults: '-' });
});
beforeEach(async () => {
  desk = await openDesk(fixture.trainer.url);
});
afterEach(() => desk.client.close());
afterAll(() => fixture.stop());

describe('what is refused', () => {
  const older = ALL.filter((kind) => kind !== FROM_STATE);
  it.each([...named(ALL, [400, 413] as const), ...named(older, [422] as const)])('%s: %d', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: 'status', status, detail: 'no such loss' });
    expect(error).toBeInstanceOf(BadRequest);
    expect(error).toMatchObject({ call: kind.call, status, detail: 'no such loss', message: expect.stringContaining('no such loss') });
    expect(requests).toBe(1);
  });

  it.each(named(withFuture(ALL), [400] as const))('%s: a poll is refused (%d) for good at the fourth time', async (_, status, kind) => {
    const { error, polls, submissions } = await pollFailure(kind, desk, { kind: 'status', status, detail: 'bad' });
    expect(error).toBeInstanceOf(BadRequest);
    expect([polls, submissions]).toEqual([4, 1]);
  });

  it.each([...named(ALL, [401, 403] as const)])('%s: a key (%d)', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: 'status', status });
    expect(error).toBeInstanceOf(CredentialRefused);
    expect([error.status, requests]).toEqual([status, 1]);
  });

  it.each(named(ALL, [401] as const))('%s: a key that is called an invalid token (%d) is not tried again', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: 'status', status, invalid_token: true });
    expect(error).toBeInstanceOf(CredentialRefused);
    expect(requests).toBe(1);
  });

  it.each(named(TRAINING, [501] as const))('%s: %d is a decision, no accident', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: 'status', status, detail: 'not served' });
    expect(error).toBeInstanceOf(BadRequest);
    expect(requests).toBe(1);
  });
});

describe('a service that does not come back', () => {
  it.each(named(ALL, ['drop', 'empty_400'] as const))('%s: %s', async (_, fault, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: fault });
    expect(error).toBeInstanceOf(RetryLater);
    expect(error.status).toBeNull();
    expect(requests).toBeGreaterThan(1);
  });

  it.each(named(ALL, [503] as const))('%s: %d', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: 'status', status, detail: 'closed' });
    expect(error).toBeInstanceOf(RetryLater);
    expect([error.status, error.detail]).toEqual([status, 'closed']);
    expect(requests).toBeGreaterThan(1);
  });

  it.each(named(withFuture(ALL), [503] as const))('%s: %d at every poll', async (_, status, kind) => {
    const { error, submissions } = await pollFailure(kind, desk, { kind: 'status', status });
    expect(error).toBeInstanceOf(RetryLater);
    expect([error.status, submissions]).toEqual([status, 1]);
  });
});
