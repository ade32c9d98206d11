import type { DecodeRequest } from '../../engine/types.ts';
import { type BaseModelFile, ThreadCalls } from './thread-calls.ts';

/** One asample call, checked. Sequence i is drawn with `seeds[i]`. */
export type SampleJob = {
  /** A base model's name, or the key of an adapter that was handed in. */
  readonly weights: string;
  /** What is asked for. `maxTokens` 0 scores the prompt only: the one sequence of the answer is empty. */
  readonly request: Omit<DecodeRequest, 'weights' | 'seed'>;
  readonly seeds: readonly number[];
  /** Only so many positions at the prompt's end get scores, the others read NaN; null for all. */
  readonly scoredSuffix: number | null;
  /** How the cells of `request.promptTargets` lie in the table they came in; null without targets. */
  readonly targetLayout: TableLayout | null;
};

/** A table of two dimensions, dense and row-major, or with listed cells only (CSR). */
export type TableLayout = {
  readonly rows: number;
  readonly columns: number;
  readonly sparse: { readonly crow: readonly number[]; readonly col: readonly number[] } | null;
};

export type SamplingCall =
  | { readonly op: 'sample'; readonly job: SampleJob }
  | { readonly op: 'cancel'; readonly callId: number }
  | { readonly op: 'adapter'; readonly key: string; readonly baseModel: string; readonly weights: Uint8Array }
  | { readonly op: 'forget'; readonly key: string };

export type StartedSample = { readonly callId: number; readonly result: Promise<Uint8Array<ArrayBuffer>> };

/** What sampling needs from the engine. */
export interface SamplingBackend {
  /** Starts a job; the result is a protobuf SampleResponse. */
  sample(job: SampleJob): StartedSample;
  /** Gives up a job; its result rejects with UserError. */
  cancel(callId: number): void;
  /** Makes a LoRA snapshot known under `key`, merged into its base model. */
  addAdapter(key: string, baseModel: string, weights: Uint8Array): void;
  forgetAdapter(key: string): void;
}

/** The decoder in a worker thread of its own; jobs that are there at the same time share its steps. */
export class SamplingThread implements SamplingBackend {
  readonly #thread: ThreadCalls<SamplingCall>;

  constructor(models: readonly BaseModelFile[], onDeath: (reason: Error) => void) {
    this.#thread = new ThreadCalls(new URL('./sampling-thread.ts', import.meta.url), models, onDeath);
  }

  sample(job: SampleJob): StartedSample {
    const { id, answer } = this.#thread.start<Uint8Array<ArrayBuffer>>({ op: 'sample', job });
    return { callId: id, result: answer };
  }

  cancel(callId: number): void {
    this.#thread.send(0, { op: 'cancel', callId });
  }

  addAdapter(key: string, baseModel: string, weights: Uint8Array): void {
    this.#thread.send(0, { op: 'adapter', key, baseModel, weights });
  }

  forgetAdapter(key: string): void {
    this.#thread.send(0, { op: 'forget', key });
  }

  get ready(): Promise<unknown> {
    return this.#thread.ready;
  }

  stop(): Promise<void> {
    return this.#thread.stop();
  }
}
