import type { StepRecord } from '../tinker-drive/recorder.ts';
import type { Difference } from './peers.ts';

/** `known`: differs as listed. */
export type Verdict = { readonly kind: 'same' | 'known' | 'failed'; readonly words: string };

/** Largest distance of two numbers, per unit of the recorded one's size where that is above 1. */
const TOLERANCE = 1e-4;
/** Differ from run to run, or are what servers and older official clients leave out. */
const INCIDENTAL = new Set(['type', 'time', 'last_request_time', 'sequence_id', 'duration_ms:mean', 'prompt_cache_hit_tokens']);
const SHOWN_DIFFERENCES = 3;

/** Judges what our client got in one step against `recorded`: what the official client got in it, or the step that it must be like. */
export function judge(ours: StepRecord | undefined, recorded: StepRecord | undefined, difference: Difference | undefined): Verdict {
  if (ours === undefined || recorded === undefined)
    return differs(`only ${ours === undefined ? 'recorded' : 'ours'} has this step`, difference);
  const [oursRefused, recordedRefused] = [ours.error !== undefined, recorded.error !== undefined];
  if (oursRefused !== recordedRefused) {
    const kind = oursRefused ? 'ours refused' : 'ours answered';
    if (difference?.kind === kind) return { kind: 'known', words: difference.reason };
    return { kind: 'failed', words: `${kind}: ${ours.error ?? recorded.error}` };
  }
  const viewed = difference?.view === undefined ? ours.result : difference.view(ours.result);
  const found = oursRefused ? statusDifference(ours.error, recorded.error) : valueDifferences(viewed, recorded.result);
  if (difference === undefined) return found.length === 0 ? { kind: 'same', words: '' } : { kind: 'failed', words: summary(found) };
  if (difference.kind !== 'values') return { kind: 'failed', words: `listed as "${difference.kind}", which did not show` };
  // Made comparable, they must agree; otherwise the values are free, but must not be equal.
  const isComparable = (difference.view ?? difference.like ?? difference.likeOwn) !== undefined;
  if (isComparable && found.length > 0) return { kind: 'failed', words: summary(found) };
  if (!isComparable && found.length === 0) return { kind: 'failed', words: 'listed as having other values, but has the same' };
  return { kind: 'known', words: difference.reason };
}

function differs(words: string, difference: Difference | undefined): Verdict {
  return difference === undefined ? { kind: 'failed', words } : { kind: 'known', words: difference.reason };
}

/** The places at which two results differ. Absent and null are the same; ids that servers draw are compared by their form. */
export function valueDifferences(ours: unknown, recorded: unknown, at = ''): string[] {
  const [a, b] = [ours ?? null, recorded ?? null];
  if (typeof a === 'number' && typeof b === 'number') {
    return Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(b)) ? [] : [`${at}: ${a}, recorded ${b}`];
  }
  if (typeof a === 'string' && typeof b === 'string') return withoutIds(a) === withoutIds(b) ? [] : [`${at}: ${a}, recorded ${b}`];
  if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) return [`${at}: ${a.length} entries, recorded ${b.length}`];
    return a.flatMap((entry, i) => valueDifferences(entry, b[i], `${at}[${i}]`));
  }
  if (isRecord(a) && isRecord(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => !INCIDENTAL.has(key));
    return keys.flatMap((key) => valueDifferences(a[key], b[key], at === '' ? key : `${at}.${key}`));
  }
  return a === b ? [] : [`${at}: ${JSON.stringify(a)}, recorded ${JSON.stringify(b)}`];
}

/** Two refusals agree when they carry the same HTTP status, where both tell one. */
function statusDifference(ours: string | undefined, recorded: string | undefined): string[] {
  const [a, b] = [statusOf(ours), statusOf(recorded)];
  return a === null || b === null || a === b ? [] : [`refused with ${a}, recorded ${b}`];
}

export function statusOf(error: string | undefined): string | null {
  return /\b[45]\d\d\b/.exec(error ?? '')?.[0] ?? null;
}

function withoutIds(text: string): string {
  return text.replace(/\b(model|session|sampling|mdl)_[0-9a-f]{8,}/g, '$1_#').replace(/"request_id":"\d+"/, '"request_id":"#"');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function summary(found: readonly string[]): string {
  const more = found.length - SHOWN_DIFFERENCES;
  return [...found.slice(0, SHOWN_DIFFERENCES), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
