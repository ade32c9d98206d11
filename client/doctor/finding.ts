/** What `doctor` found out about one thing. */
export type Finding = {
  readonly part: 'here' | 'services' | 'environments';
  readonly name: string;
  /** `unknown`: nothing was found wrong, and only use will tell. */
  readonly state: 'works' | 'missing' | 'warning' | 'unknown';
  readonly told: string;
  /** What to do about it; null where there is nothing to do. */
  readonly remedy: string | null;
  /** What was asked for does not work without it. */
  readonly needed: boolean;
};

export const works = (name: string, told: string) => ({ name, state: 'works', told, remedy: null }) as const;
export const missing = (name: string, told: string, remedy: string) => ({ name, state: 'missing', told, remedy }) as const;
export const warning = (name: string, told: string, remedy: string | null = null) => ({ name, state: 'warning', told, remedy }) as const;
export const unknown = (name: string, told: string, remedy: string | null = null) => ({ name, state: 'unknown', told, remedy }) as const;

export type Seen = ReturnType<typeof works | typeof missing | typeof warning | typeof unknown>;

/** Looks, for a few seconds at most: what hangs is what was to be found out. */
export async function look(name: string, limitMs: number, eye: () => Promise<Seen>): Promise<Seen> {
  const { promise, resolve } = Promise.withResolvers<Seen>();
  const late = () => resolve(missing(name, `gave no answer within ${limitMs / 1000} s`, 'look at what keeps it, and run this again'));
  const timer = setTimeout(late, limitMs);
  eye().then(resolve, (error: unknown) => resolve(missing(name, firstLine(error), 'see the message')));
  return promise.finally(() => clearTimeout(timer));
}

export const firstLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';

/** Something does not work without which what was asked for cannot be done. */
export const isBroken = (findings: readonly Finding[]): boolean => findings.some(({ needed, state }) => needed && state === 'missing');
