import { type Caller, sleep } from './caller.ts';
import { sampleOf } from './decode-result.ts';
import { ResubmitSample, SessionLost } from './errors.ts';
import { type Future, retrieve, submit } from './futures.ts';
import { backoffMs } from './retry.ts';
import { type AsampleOptions, asampleBody } from './sample-body.ts';
import type { DispatchedSample } from './sample-result.ts';

type Session = { readonly id: string; nextSeqId: number };

/** A sample that is lost this often in a row is not lost by chance. */
const LONGEST_LOSING_STREAK = 8;

/** Sends the samples of one sampling session. A lost sample is submitted again, a lost session opened again, without the caller noticing. */
export class SampleDispatch {
  readonly #caller: Caller;
  readonly #open: () => Promise<string>;
  readonly #mayCancel: boolean;
  #session: Promise<Session>;

  /** `open` opens another sampling session on the same weights and returns its id. */
  constructor(caller: Caller, mayCancel: boolean, sessionId: string, open: () => Promise<string>) {
    this.#caller = caller;
    this.#mayCancel = mayCancel;
    this.#open = open;
    this.#session = Promise.resolve({ id: sessionId, nextSeqId: 0 });
  }

  /** Every submission has its own seq_id: a repeated one would bring the lost result back. */
  async run(options: AsampleOptions, signal: AbortSignal | undefined): Promise<DispatchedSample> {
    for (let losses = 0; ; losses++) {
      const session = await this.#session;
      try {
        return await this.#attempt(session, options, signal);
      } catch (error) {
        const isLost = error instanceof ResubmitSample || error instanceof SessionLost;
        if (!isLost || losses >= LONGEST_LOSING_STREAK) throw error;
        if (error instanceof SessionLost) await this.#reopen(session);
      }
      if (losses > 0) await sleep(backoffMs(losses - 1), signal);
    }
  }

  async #attempt(session: Session, options: AsampleOptions, signal: AbortSignal | undefined): Promise<DispatchedSample> {
    const body = asampleBody(session.id, session.nextSeqId++, options);
    const headers = { 'x-tinker-sampling-backpressure': '1' };
    const call = { method: 'POST', path: 'asample', body, headers, phase: 'sample', subject: 'sampling session', signal } as const;
    const future = await submit(this.#caller, call, 'Sample', 'sample');
    try {
      return { ...sampleOf(await retrieve(this.#caller, future, signal), future), sequenceIds: future.sampleSequenceIds ?? [] };
    } catch (error) {
      if (signal?.aborted && this.#mayCancel) this.#cancel(future);
      throw error;
    }
  }

  /** Only the first of the calls that met the lost session opens a new one. @throws SessionLost when the session above it is gone too */
  async #reopen(lost: Session): Promise<void> {
    if ((await this.#session) !== lost) return;
    const opening = this.#open().then((id) => ({ id, nextSeqId: 0 }));
    this.#session = opening;
    // A failed opening must not stick: the next call tries again from the lost session.
    opening.catch(() => {
      this.#session = Promise.resolve(lost);
    });
    await opening;
  }

  /** Spares the service the work; nothing depends on it. */
  #cancel(future: Future): void {
    const body = JSON.stringify({ request_id: future.requestId });
    this.#caller.send({ method: 'POST', path: 'cancel_future', body, phase: 'once', subject: 'other' }).catch(() => {});
  }
}
