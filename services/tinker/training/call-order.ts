import { ofEarlierCall } from '../errors.ts';

/**
 * The sequence numbers of one model's calls. A call takes its numbers the moment it is made; its submission waits until
 * the one before was answered, its result does not. After a failure the server may lack a number and would wait for it
 * for ever, so no later call is sent: each fails with the same error, which then says so.
 */
export class CallOrder {
  #nextSeqId: number;
  #lastSubmission: Promise<unknown> = Promise.resolve();
  #failure: { readonly error: unknown } | null = null;

  constructor(nextSeqId: number) {
    this.#nextSeqId = nextSeqId;
  }

  get nextSeqId(): number {
    return this.#nextSeqId;
  }

  /** `submit` gets the first of `count` consecutive numbers. */
  async submit<Submitted>(count: number, submit: (firstSeqId: number) => Promise<Submitted>): Promise<Submitted> {
    this.#assertIntact();
    const firstSeqId = this.#nextSeqId;
    this.#nextSeqId += count;
    const submission = this.#lastSubmission.then(() => {
      this.#assertIntact();
      return submit(firstSeqId);
    });
    this.#lastSubmission = submission.catch((error) => this.fail(error));
    return submission;
  }

  /** A call failed with this error: later ones are not sent and fail with the same one. */
  fail(error: unknown): void {
    this.#failure ??= { error: ofEarlierCall(error) };
  }

  /** From now on every call fails with this very error. */
  end(error: unknown): void {
    this.#failure ??= { error };
  }

  #assertIntact(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}
