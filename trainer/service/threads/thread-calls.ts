import { Worker } from 'node:worker_threads';
import { UserError } from '../failures.ts';

/** A call to a worker thread and its answer, paired by `id`. */
export type CallMessage<Call> = { readonly id: number; readonly call: Call };
export type AnswerMessage =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: string; readonly userError: boolean };

/** What a base model is called and where its weights lie. */
export type BaseModelFile = { readonly name: string; readonly weightsPath: string };

/** Under this id a thread says that it is ready. */
const READY_ID = 0;
export const readyAnswer: AnswerMessage = { id: READY_ID, ok: true, value: null };

/**
 * Request-and-answer over a worker thread. A thread that dies takes the service with it (`onDeath`): the supervisor starts a new one,
 * which goes on from the journals; half a service would only hide the failure.
 */
export class ThreadCalls<Call> {
  readonly #worker: Worker;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  /** Resolves when the thread has read the base models; rejects when it cannot. */
  readonly ready: Promise<unknown>;

  constructor(script: URL, models: readonly BaseModelFile[], onDeath: (reason: Error) => void) {
    const ready = Promise.withResolvers<unknown>();
    let isReady = false;
    this.ready = ready.promise.then(() => {
      isReady = true;
    });
    this.#pending.set(READY_ID, ready);
    this.#worker = new Worker(script, { workerData: models });
    this.#worker.on('message', (answer: AnswerMessage) => this.#settle(answer));
    this.#worker.on('error', (reason) => {
      const error = reason instanceof Error ? reason : new Error(String(reason));
      if (isReady) onDeath(error);
      else ready.reject(error);
    });
  }

  /** Sends a call; the type of the answer is the caller's knowledge of the thread's script. */
  call<Value>(call: Call): Promise<Value> {
    return this.start<Value>(call).answer;
  }

  /** Like `call`, and tells the id under which the thread knows the call. */
  start<Value>(call: Call): { readonly id: number; readonly answer: Promise<Value> } {
    this.#lastId += 1;
    const id = this.#lastId;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    this.send(id, call);
    return { id, answer: pending.promise as Promise<Value> };
  }

  /** Posts without expecting an answer. */
  send(id: number, call: Call): void {
    this.#worker.postMessage({ id, call } satisfies CallMessage<Call>);
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  #settle(answer: AnswerMessage): void {
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if (answer.ok) pending?.resolve(answer.value);
    else pending?.reject(answer.userError ? new UserError(answer.error) : new Error(answer.error));
  }
}

/** The answer that carries a thrown error over the thread's border. */
export function failedAnswer(id: number, error: unknown): AnswerMessage {
  return { id, ok: false, error: error instanceof Error ? error.message : String(error), userError: error instanceof UserError };
}
