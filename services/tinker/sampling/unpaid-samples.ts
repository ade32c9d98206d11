import { createHash } from 'node:crypto';
import type { Future } from '../futures/futures.ts';
import { type AsampleOptions, asampleBody } from './sample-body.ts';

/**
 * Samples that the service has taken and will hand out when it is paid, by what was asked for. Each serves one request, so that two of the same
 * never share a sample.
 */
export class UnpaidSamples {
  readonly #kept = new Map<string, Future[]>();

  keep(sessionId: string, options: AsampleOptions, future: Future): void {
    const key = keyOf(sessionId, options);
    this.#kept.set(key, [...(this.#kept.get(key) ?? []), future]);
  }

  /** The oldest that answers this request, or the one of this id, once; null when there is none. */
  take(sessionId: string, options: AsampleOptions, requestId?: string): Future | null {
    if (this.#kept.size === 0) return null;
    const key = keyOf(sessionId, options);
    const kept = this.#kept.get(key) ?? [];
    const future = kept.find((one) => requestId === undefined || one.requestId === requestId) ?? null;
    const others = kept.filter((one) => one !== future);
    if (others.length > 0) this.#kept.set(key, others);
    else this.#kept.delete(key);
    return future;
  }
}

/** The body with one number for all: two requests are the same when nothing but their number differs. */
function keyOf(sessionId: string, options: AsampleOptions): string {
  return createHash('sha256')
    .update(asampleBody(sessionId, 0, options))
    .digest('base64');
}
