import { sha256 } from '../random/sha256.ts';

/** Longest key that Temporal takes, in bytes. */
const MOST_BYTES = 64;

/** A run's key for Temporal's fair sharing of task queues: its id, or a digest where that is too long. */
export function fairnessKey(runId: string): string {
  const bytes = new TextEncoder().encode(runId);
  if (bytes.length <= MOST_BYTES) return runId;
  return Array.from(sha256(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
