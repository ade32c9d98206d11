import { equals, fromBinary } from '@bufbuild/protobuf';
import { ForwardBackwardRequestSchema } from '../../../services/tinker/wire/tinker_public_pb.ts';
import { difference, EXACT } from '../same.ts';
import type { Exchange, SeenRequest } from './scripted-server.ts';

/** Headers that mean something to the service; all others name the library. */
const HEADERS = [
  'content-type',
  'x-stainless-retry-count',
  'x-tinker-request-iteration',
  'x-tinker-request-type',
  'x-tinker-sampling-backpressure',
] as const;
const ROUND_TRIP = 'x-tinker-create-promise-roundtrip-time';

/** The whole poll loop of a sampling session runs beside the calls it serves: what it does is compared by itself. */
const isBeside = (path: string) => path.endsWith('/retrieve_futures');

export type RequestRules = {
  /** Says what a request's X-API-Key is, in the words of the recording. */
  readonly nameOfKey: (key: string) => string;
  /** Ours are stamped by a clock on which only pauses take time. */
  readonly pauses: boolean;
};

/** Where our requests depart from the recorded ones, or null. */
export function requestDifference(recorded: readonly Exchange[], seen: readonly SeenRequest[], rules: RequestRules): string | null {
  for (const beside of [false, true]) {
    const theirs = recorded.filter(({ path }) => isBeside(path) === beside);
    const ours = seen.filter(({ path }) => isBeside(path) === beside);
    const found = sequenceDifference(theirs, ours, rules);
    if (found !== null) return found;
  }
  return null;
}

function sequenceDifference(theirs: readonly Exchange[], ours: readonly SeenRequest[], rules: RequestRules): string | null {
  const names = (requests: readonly { method: string; path: string; query: string }[]) =>
    requests.map(({ method, path, query }) => `${method} ${path}${query && `?${query}`}`);
  const order = difference(names(theirs), names(ours), undefined, 'requests');
  if (order !== null) return `${order}; ours: ${names(ours).join(', ')}`;
  const keys = difference(
    pattern(theirs.map(({ req_headers }) => req_headers['x-idempotency-key'])),
    pattern(ours.map(({ headers }) => headers['x-idempotency-key']?.toString())),
    undefined,
    'idempotency keys',
  );
  if (keys !== null) return keys;
  const pause = rules.pauses ? pauseDifference(theirs, ours) : null;
  if (pause !== null) return pause;
  for (const [i, their] of theirs.entries()) {
    const our = ours[i];
    if (our === undefined) return `request ${i} is missing`;
    const found = headerDifference(their, our, rules) ?? bodyDifference(their, our);
    if (found !== null) return `request ${i} (${their.path}): ${found}`;
  }
  return null;
}

/** Shorter recorded pauses are the time that the work took: ours must be at once too. */
const LEAST_PAUSE_MS = 400;
const AT_ONCE_MS = 500;

/** Pauses are spread at random on both sides. One after a 402 is the official client's wait for a payment: here a person decides. */
function pauseDifference(theirs: readonly Exchange[], ours: readonly SeenRequest[]): string | null {
  for (let i = 1; i < theirs.length; i++) {
    const their = (theirs[i]?.t_ms ?? 0) - (theirs[i - 1]?.t_ms ?? 0);
    const our = (ours[i]?.atMs ?? 0) - (ours[i - 1]?.atMs ?? 0);
    if (theirs[i - 1]?.status === 402 || isAboutAsLong(our, their)) continue;
    return `pause before request ${i}: expected about ${their} ms, got ${Math.round(our)} ms`;
  }
  return null;
}

/** Half to be generous: both sides spread their pauses at random by a quarter. */
function isAboutAsLong(our: number, their: number): boolean {
  return their < LEAST_PAUSE_MS ? our < AT_ONCE_MS : our >= 0.5 * their && our <= 2 * their + 1000;
}

function headerDifference({ req_headers: theirs }: Exchange, { headers: ours }: SeenRequest, rules: RequestRules): string | null {
  for (const name of HEADERS) {
    if (theirs[name] !== ours[name]) return `${name}: expected ${theirs[name]}, got ${ours[name]}`;
  }
  const accept = theirs.accept ?? 'application/json';
  if (ours.accept !== accept) return `accept: expected ${accept}, got ${ours.accept}`;
  if (theirs[ROUND_TRIP] !== undefined && !(Number(ours[ROUND_TRIP]) >= 0)) return `${ROUND_TRIP} is missing`;
  const key = rules.nameOfKey(String(ours['x-api-key']));
  return key === theirs['x-api-key'] ? null : `x-api-key: expected ${theirs['x-api-key']}, got ${key}`;
}

export function bodyDifference({ req }: Exchange, our: SeenRequest): string | null {
  const binary = binaryOf(req);
  if (binary === null) return difference(req ?? undefined, our.json, EXACT, 'body');
  const [theirs, ours] = [binary, our.bytes].map((bytes) => fromBinary(ForwardBackwardRequestSchema, bytes));
  return theirs && ours && equals(ForwardBackwardRequestSchema, theirs, ours) ? null : 'the decoded bodies differ';
}

/** The bytes of a recorded binary body; null when it is JSON. */
export function binaryOf(body: unknown): Uint8Array | null {
  const isBinary = typeof body === 'object' && body !== null && 'base64' in body && typeof body.base64 === 'string';
  return isBinary ? Buffer.from(String(body.base64), 'base64') : null;
}

/** Which of the keys are equal: each as the index of its first occurrence. */
export function pattern(keys: readonly (string | undefined)[]): number[] {
  return keys.map((key) => (key === undefined ? -1 : keys.indexOf(key)));
}
