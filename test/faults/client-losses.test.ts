import { describe, expect, it } from 'vitest';
import { BillingPaused, SessionLost, TinkerClient, TrainingStateUnknown } from '../../services/tinker/index.ts';
import { on, putFaults } from '../support/faults.ts';
import { withDesk } from '../support/faulty-trainer.ts';
import { KEY } from '../trainer-process.ts';
import { ALL, type Desk, failure, failureOf, IN_SESSION, named, pollFailure, SAMPLING, TRAINING, withFuture } from './client-calls.ts';
import { ADAM, BATCH } from './client-program.ts';

/** An empty account, and things that are gone: the client says so at once, by the class that tells what to do. */

let desk: Desk;
withDesk((opened) => {
  desk = opened;
});

describe('an empty account', () => {
  const fault = { kind: 'status', status: 402, detail: 'no funds' } as const;

  it.each(named(ALL, [402]))('%s: %d is a pause', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, fault);
    expect(error).toBeInstanceOf(BillingPaused);
    expect(error).toMatchObject({ call: kind.call, status, detail: 'no funds' });
    expect(requests).toBe(1);
  });

  it.each(named(withFuture(ALL), [402]))('%s: %d is a pause while it waits', async (_, status, kind) => {
    const { error, submissions } = await pollFailure(kind, desk, fault);
    expect(error).toBeInstanceOf(BillingPaused);
    expect(error).toMatchObject({ status, detail: 'no funds', requestId: expect.stringContaining(':') });
    expect(submissions).toBe(1);
  });

  it('the same training call goes on after the pause', async () => {
    const { client, training, url } = desk;
    await training.forwardBackward(BATCH, 'cross_entropy');
    await putFaults(url, on('optim_step', fault));
    const { modelId, nextSeqId } = training;
    expect(await failureOf(training.optimStep(ADAM))).toBeInstanceOf(BillingPaused);
    expect(await client.training(modelId, { nextSeqId }).optimStep(ADAM)).toMatchObject({ metrics: { 'optimizer_step:max': 1 } });
  });
});

describe('what is gone', () => {
  it.each(named(TRAINING, [404, 410] as const))('%s: %d leaves the training unknown, without a second try', async (_, status, kind) => {
    const { error, requests } = await failure(kind, desk, { kind: 'status', status });
    expect(error).toBeInstanceOf(TrainingStateUnknown);
    expect([error.status, requests]).toEqual([status, 1]);
  });

  it.each(named(withFuture(TRAINING), [410] as const))(
    '%s: a result that is gone (%d) leaves the training unknown; nothing is submitted again',
    async (_, status, kind) => {
      const { error, polls, submissions } = await pollFailure(kind, desk, { kind: 'status', status });
      expect(error).toBeInstanceOf(TrainingStateUnknown);
      expect([error.status, polls, submissions]).toEqual([410, 1, 1]);
    },
  );

  it.each(named(TRAINING, [404, 410] as const))('%s of a lost model (%d); all later calls say the same', async (_, status, kind) => {
    const { error } = await failure(kind, desk, { kind: 'lost_model', status });
    expect(error).toBeInstanceOf(TrainingStateUnknown);
    const later = await failureOf(desk.training.optimStep(ADAM));
    expect([later.constructor, later.message, later.cause]).toEqual([
      TrainingStateUnknown,
      error.message.replace(': ', ': not sent: an earlier call of this client failed: '),
      error,
    ]);
  });

  it.each(named([...IN_SESSION, ...SAMPLING], [410] as const))('%s in a lost session (%d)', async (_, status, kind) => {
    const { error } = await failure(kind, desk, { kind: 'lost_session', status });
    expect(error).toBeInstanceOf(SessionLost);
    expect(error.status).toBe(status);
  });

  it('a session to be joined', async () => {
    const { client, url } = desk;
    await putFaults(url, on('session_heartbeat', { kind: 'lost_session' }));
    const joining = TinkerClient.attach({ baseUrl: url, apiKey: KEY, sessionId: client.sessionId });
    expect(await failureOf(joining)).toBeInstanceOf(SessionLost);
  });
});
