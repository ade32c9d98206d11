import { isFullyReleased, type Ledger, withReleased } from './ledger.ts';
import { harborTrialOf, type RunningSandbox, trialNameOf } from './sandbox.ts';

export type ReapOptions = {
  /** Take what dead owners left behind, by exact id. */
  readonly deadOwners: boolean;
  /** Take harbor's sandboxes of the whole account that are older than this, whoever made them; null takes none. */
  readonly staleMinutes: number | null;
};

export type ReapInput = {
  readonly ledgers: readonly Ledger[];
  readonly running: readonly RunningSandbox[];
  readonly isAlive: (pid: number) => boolean;
  readonly nowMs: number;
  readonly options: ReapOptions;
};

/** A sandbox to be killed, and why it may be. */
export type ReapCandidate = {
  readonly sandboxId: string;
  readonly ageSeconds: number;
  readonly source: 'ledger' | 'metadata';
  readonly trialName: string | null;
  readonly ownerPid: number | null;
  readonly ownerAlive: boolean | null;
};

export type ReapPlan = {
  /** Oldest first; equally old ones in the ledger's order. */
  readonly candidates: readonly ReapCandidate[];
  /** Held by dead owners and not running any more: only to be written off. */
  readonly vanished: readonly string[];
};

/** Who answers for a sandbox: the owner that holds it, a living one before a dead one. */
type Claim = { readonly pid: number | null; readonly alive: boolean; readonly trialName: string | null };

/** What may be reaped. A sandbox is only ever taken when no living owner holds it. */
export function planReap({ ledgers, running, isAlive, nowMs, options }: ReapInput): ReapPlan {
  const claims = claimsOf(ledgers, isAlive);
  const byId = new Map(running.map((sandbox) => [sandbox.sandboxId, sandbox]));
  const ageSeconds = ({ startedAtMs }: RunningSandbox) => Math.max(0, (nowMs - startedAtMs) / 1000);
  const orphans = options.deadOwners ? [...claims].filter(([, claim]) => !claim.alive) : [];
  const fromLedger = orphans.flatMap(([sandboxId, claim]): ReapCandidate[] => {
    const sandbox = byId.get(sandboxId);
    if (!sandbox) return [];
    const trialName = claim.trialName ?? trialNameOf(sandbox.metadata.session_id ?? '');
    return [{ sandboxId, ageSeconds: ageSeconds(sandbox), source: 'ledger', trialName, ownerPid: claim.pid, ownerAlive: false }];
  });
  const taken = new Set(fromLedger.map(({ sandboxId }) => sandboxId));
  const stale = running.flatMap((sandbox): ReapCandidate[] => {
    const [age, trialName, claim] = [ageSeconds(sandbox), harborTrialOf(sandbox), claims.get(sandbox.sandboxId)];
    const old = options.staleMinutes !== null && age > options.staleMinutes * 60;
    if (!old || trialName === null || claim?.alive || taken.has(sandbox.sandboxId)) return [];
    const owner = { ownerPid: claim?.pid ?? null, ownerAlive: claim ? claim.alive : null };
    return [{ sandboxId: sandbox.sandboxId, ageSeconds: age, source: 'metadata', trialName, ...owner }];
  });
  return {
    candidates: [...fromLedger, ...stale].sort((a, b) => b.ageSeconds - a.ageSeconds),
    vanished: orphans.map(([sandboxId]) => sandboxId).filter((sandboxId) => !byId.has(sandboxId)),
  };
}

/** By sandbox, in the ledgers' order. */
function claimsOf(ledgers: readonly Ledger[], isAlive: (pid: number) => boolean): Map<string, Claim> {
  const claims = new Map<string, Claim>();
  for (const { ownerPid, held } of ledgers) {
    const alive = owns(ownerPid, isAlive);
    for (const { sandboxId, trialName } of held)
      if (!claims.get(sandboxId)?.alive) claims.set(sandboxId, { pid: ownerPid, alive, trialName });
  }
  return claims;
}

/** Process 0 is nobody: to a signal it would mean the caller's own group. */
function owns(pid: number | null, isAlive: (pid: number) => boolean): boolean {
  return pid !== null && pid > 0 && isAlive(pid);
}

/** What the provider answered to a kill; `gone` = there was no such sandbox any more. */
export type KillResult = 'killed' | 'gone' | 'error';

export type ReapOutcome = {
  readonly killed: readonly string[];
  readonly alreadyGone: readonly string[];
  /** They stay in the ledger, for the next reap. */
  readonly failed: readonly string[];
  /** Slots that this reap freed: its own kills only. */
  readonly freed: number;
  /** The ledgers once everything that is gone is written off. */
  readonly ledgers: readonly Ledger[];
  /** Files that say nothing any more. */
  readonly prunable: readonly string[];
};

/** What follows from the kills: what to write off, and which ledger files of dead owners can be removed. */
export function settleReap(
  { candidates, vanished }: ReapPlan,
  kills: ReadonlyMap<string, KillResult>,
  { ledgers, isAlive, options }: Pick<ReapInput, 'ledgers' | 'isAlive' | 'options'>,
): ReapOutcome {
  const having = (result: KillResult) => candidates.map(({ sandboxId }) => sandboxId).filter((id) => kills.get(id) === result);
  const [killed, alreadyGone, failed] = [having('killed'), having('gone'), having('error')];
  const written = ledgers.map((ledger) => withReleased(ledger, new Set([...vanished, ...killed, ...alreadyGone])));
  // An empty ledger never held anything: it is tidied up with the dead, not by a sweep by age.
  const litter = (ledger: Ledger) => isFullyReleased(ledger) && (options.deadOwners || !ledger.empty);
  const prunable = written.filter((ledger) => litter(ledger) && !owns(ledger.ownerPid, isAlive)).map(({ file }) => file);
  return { killed, alreadyGone, failed, freed: killed.length, ledgers: written, prunable };
}
