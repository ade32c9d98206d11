import { z } from 'zod';

const Created = z.object({
  event: z.literal('created'),
  sandbox_id: z.string().min(1),
  template_id: z.string(),
  created_at: z.string(),
  trial_name: z.string().nullish(),
  pid: z.int(),
});
const Released = z.object({ event: z.literal('released'), sandbox_id: z.string().min(1), released_at: z.string(), pid: z.int() });
const Line = z.discriminatedUnion('event', [Created, Released]);
type Line = z.infer<typeof Line>;

/** A sandbox that a process wrote down before it was created, and has not written off. */
export type HeldSandbox = { readonly sandboxId: string; readonly trialName: string | null; readonly pid: number };

/** What one process wrote down of its sandboxes. */
export type Ledger = {
  readonly file: string;
  /** The process that writes this file; null when neither the file's name nor a line says. */
  readonly ownerPid: number | null;
  /** In the order in which they first appear. */
  readonly held: readonly HeldSandbox[];
  readonly released: readonly string[];
  /** Not one readable line: its owner ended before it made a sandbox. */
  readonly empty: boolean;
};

/** Is there anything left that the owner would have to answer for? */
export function isFullyReleased(ledger: Ledger): boolean {
  return ledger.held.length === 0;
}

/**
 * Folds ledger files (name → text of JSON lines) into what each owner holds, by file name. The last event of a sandbox wins: one that was
 * created again is held again. Lines that do not read (torn by a crash, of another kind) are skipped; files of other names are not ledgers.
 */
export function readLedgers(files: Readonly<Record<string, string>>): Ledger[] {
  return Object.entries(files)
    .filter(([file]) => file.endsWith('.jsonl'))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, text]) => foldLedger(file, text.split('\n').flatMap(parseLine)));
}

/** The ledger as it reads once these sandboxes are written off. */
export function withReleased(ledger: Ledger, sandboxIds: ReadonlySet<string>): Ledger {
  const gone = ledger.held.filter(({ sandboxId }) => sandboxIds.has(sandboxId));
  if (gone.length === 0) return ledger;
  return {
    ...ledger,
    held: ledger.held.filter(({ sandboxId }) => !sandboxIds.has(sandboxId)),
    released: [...ledger.released, ...gone.map(({ sandboxId }) => sandboxId)],
  };
}

function foldLedger(file: string, lines: readonly Line[]): Ledger {
  const last = new Map<string, Line>();
  for (const line of lines) last.set(line.sandbox_id, line);
  const events = [...last.values()];
  return {
    file,
    ownerPid: pidInName(file) ?? lines[0]?.pid ?? null,
    held: events.flatMap((event) =>
      event.event === 'created' ? [{ sandboxId: event.sandbox_id, trialName: event.trial_name ?? null, pid: event.pid }] : [],
    ),
    released: events.flatMap((event) => (event.event === 'released' ? [event.sandbox_id] : [])),
    empty: lines.length === 0,
  };
}

function pidInName(file: string): number | null {
  const digits = /^([0-9]+)(?:-.*)?\.jsonl$/.exec(file)?.[1];
  return digits === undefined ? null : Number(digits);
}

function parseLine(text: string): Line[] {
  try {
    const parsed = Line.safeParse(JSON.parse(text));
    return parsed.success ? [parsed.data] : [];
  } catch {
    return [];
  }
}
