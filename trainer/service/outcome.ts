/** How a future ended. `proto` is the binary result of Sample, Forward and ForwardBackward. */
export type Outcome =
  | { readonly kind: 'json'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'proto'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'failed'; readonly error: string; readonly category: 'user' | 'server' };

/**
 * What is known about a request id:
 * `pending` not finished yet, `gone` accepted once but no longer remembered (submit again), `unknown` never seen.
 */
export type FutureState = Outcome | { readonly kind: 'pending' } | { readonly kind: 'gone' } | { readonly kind: 'unknown' };
