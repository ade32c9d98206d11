import { describe, expect, it } from 'vitest';
import { BadRequest, CredentialRefused, RetryLater } from '../../services/tinker/index.ts';
import type { RuleInput } from '../../trainer/faults/plan.ts';
import { withDesk } from '../support/faulty-trainer.ts';
import {
  ALL,
  type Desk,
  FROM_STATE,
  failure,
  failuresAtOnce,
  groups,
  type Kind,
  named,
  pollFailure,
  TRAINING,
  withFuture,
} from './client-calls.ts';

/** Refusals and services that do not come back: the client stops after no more requests than make sense. */

let desk: Desk;
withDesk((opened) => {
  desk = opened;
});

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
  const seen = async (kinds: readonly Kind[], fault: RuleInput['fault'], at: 'request' | 'poll') =>
    (await failuresAtOnce(kinds, desk.url, fault, at)).map(({ call, error, counts }) => ({
      call,
      isRetryLater: error instanceof RetryLater,
      status: error.status,
      detail: error.detail,
      isTriedAgain: (counts[0] ?? 0) > 1,
      submissions: at === 'poll' ? counts[1] : null,
    }));

  it.each(table(ALL, ['drop', 'empty_400'] as const))('%s: %s', async (_, kind, kinds) => {
    expect(await seen(kinds, { kind }, 'request')).toEqual(
      kinds.map(({ call }) => ({
        call,
        isRetryLater: true,
        status: null,
        detail: expect.anything(),
        isTriedAgain: true,
        submissions: null,
      })),
    );
  });

  it.each(table(ALL, [503] as const))('%s: %d', async (_, status, kinds) => {
    expect(await seen(kinds, { kind: 'status', status, detail: 'closed' }, 'request')).toEqual(
      kinds.map(({ call }) => ({ call, isRetryLater: true, status, detail: 'closed', isTriedAgain: true, submissions: null })),
    );
  });

  it.each(table(withFuture(ALL), [503] as const))('%s: %d at every poll', async (_, status, kinds) => {
    expect(await seen(kinds, { kind: 'status', status, detail: 'closed' }, 'poll')).toEqual(
      kinds.map(({ call }) => ({ call, isRetryLater: true, status, detail: 'closed', isTriedAgain: true, submissions: 1 })),
    );
  });
});

/** Rows of a table test: what is called, what varies, the kinds of call. */
function table<T>(all: readonly Kind[], varied: readonly T[]): [string, T, Kind[]][] {
  return groups(all).flatMap((kinds) => varied.map((each): [string, T, Kind[]] => [kinds.map(({ call }) => call).join(', '), each, kinds]));
}
