import { seededRandom, seedFromName } from '../random/seeded.ts';

const EXACT_TASKS = 14;
const FLIPS = 20_000;

/** Sign patterns over n tasks: task t of pattern p is positive where `isPositive[p · n + t]` is 1. */
export type SignPatterns = { readonly isExact: boolean; readonly count: number; readonly isPositive: Uint8Array };

let latest: { readonly n: number; readonly patterns: SignPatterns } | null = null;

/** All patterns up to 14 tasks, else 20,000 seeded ones, the same for every question about n tasks; the latest are kept at hand. */
export function signPatterns(n: number): SignPatterns {
  if (latest?.n !== n) latest = { n, patterns: n <= EXACT_TASKS ? allPatterns(n) : drawnPatterns(n) };
  return latest.patterns;
}

function allPatterns(n: number): SignPatterns {
  const count = 2 ** n;
  const isPositive = new Uint8Array(count * n);
  for (let i = 0, pattern = 0; pattern < count; pattern++) {
    for (let task = 0; task < n; task++) isPositive[i++] = (pattern >> task) & 1;
  }
  return { isExact: true, count, isPositive };
}

/** The observed pattern, all positive, is one of them, so that a p-value is never 0. */
function drawnPatterns(n: number): SignPatterns {
  const random = seededRandom(seedFromName('sign flips'));
  const isPositive = new Uint8Array(FLIPS * n).fill(1, 0, n);
  for (let i = n; i < isPositive.length; i++) isPositive[i] = random.coin() ? 1 : 0;
  return { isExact: false, count: FLIPS, isPositive };
}
