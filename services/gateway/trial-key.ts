import { randomBytes, timingSafeEqual } from 'node:crypto';

const KEY_BYTES = 24;

/** The key of one trial: 192 random bits, never used for another. */
export class TrialKey {
  readonly text = `sr-${randomBytes(KEY_BYTES).toString('base64url')}`;
  readonly #bytes = Buffer.from(this.text);

  /** In constant time for keys of the right length, which is no secret. */
  accepts(given: string): boolean {
    const bytes = Buffer.from(given);
    return bytes.length === this.#bytes.length && timingSafeEqual(bytes, this.#bytes);
  }
}
