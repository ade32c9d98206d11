import { BadSandboxCap, capacityAfterReap, capacity as capacityOf, sandboxCap } from '../../../core/e2b/capacity.ts';
import { isFullyReleased, readLedgers } from '../../../core/e2b/ledger.ts';
import { type KillResult, planReap, type ReapInput, type ReapOutcome, type ReapPlan, settleReap } from '../../../core/e2b/reap.ts';
import { type RunningSandbox, trialNameOf } from '../../../core/e2b/sandbox.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

type Files = Record<string, string | string[]>;
type Kills = Record<string, KillResult>;
const ledgersOf = (files: Files) =>
  readLedgers(Object.fromEntries(Object.entries(files).map(([file, text]) => [file, Array.isArray(text) ? text.join('\n') : text])));

function ledger(input: { files: Files }, expected: unknown): Finding {
  const files = ledgersOf(input.files).map((one) => ({
    file: one.file,
    owner_pid: one.ownerPid,
    held: one.held.map(({ sandboxId, trialName, pid }) => ({ sandbox_id: sandboxId, trial_name: trialName, pid })),
    released: one.released,
    fully_released: isFullyReleased(one),
  }));
  return compare(expected, { files });
}

/** A plan carried out by a provider that answers as the case says. */
function carryOut(input: ReapInput, kills: Kills): { plan: ReapPlan; outcome: ReapOutcome } {
  const plan = planReap(input);
  const results = new Map(plan.candidates.map(({ sandboxId }) => [sandboxId, kills[sandboxId] ?? 'killed']));
  return { plan, outcome: settleReap(plan, results, input) };
}

type ReapCase = {
  now: string;
  ledger_files: Files;
  running: { sandbox_id: string; started_at: string; metadata: Record<string, string> }[];
  living_pids: number[];
  dead_owners: boolean;
  stale_minutes: number | null;
  kill_results: Kills;
};
function reap(input: ReapCase, expected: unknown): Finding {
  const sandboxes = input.running.map(
    (raw): RunningSandbox => ({ sandboxId: raw.sandbox_id, startedAtMs: Date.parse(raw.started_at), metadata: raw.metadata }),
  );
  const { plan, outcome } = carryOut(
    {
      ledgers: ledgersOf(input.ledger_files),
      running: sandboxes,
      isAlive: (pid) => input.living_pids.includes(pid),
      nowMs: Date.parse(input.now),
      options: { deadOwners: input.dead_owners, staleMinutes: input.stale_minutes },
    },
    input.kill_results,
  );
  return compare(expected, {
    candidates: plan.candidates.map((one) => ({
      sandbox_id: one.sandboxId,
      age_seconds: one.ageSeconds,
      source: one.source,
      trial_name: one.trialName,
      owner_pid: one.ownerPid,
      owner_alive: one.ownerAlive,
    })),
    vanished: plan.vanished,
    killed: outcome.killed,
    already_gone: outcome.alreadyGone,
    failed: outcome.failed,
    freed: outcome.freed,
    ledger_files_left: outcome.ledgers.map(({ file }) => file).filter((file) => !outcome.prunable.includes(file)),
  });
}

type CapacityCase = {
  required: number;
  cap: number;
  running: string[];
  ledger_files: Files;
  living_pids: number[];
  kill_results: Kills;
};
function capacity(input: CapacityCase, expected: unknown): Finding {
  const before = capacityOf({ cap: input.cap, running: input.running.length, required: input.required });
  const named = (after: typeof before, reaped: number) =>
    compare(expected, { alive_before: before.running, alive: after.running, free: after.free, ok: after.ok, reaped, reap_ran: !before.ok });
  if (before.ok) return named(before, 0);
  const { outcome } = carryOut(
    {
      ledgers: ledgersOf(input.ledger_files),
      running: input.running.map((sandboxId) => ({ sandboxId, startedAtMs: 0, metadata: {} })),
      isAlive: (pid) => input.living_pids.includes(pid),
      nowMs: 0,
      options: { deadOwners: true, staleMinutes: null },
    },
    input.kill_results,
  );
  return named(capacityAfterReap(before, outcome), outcome.freed);
}

function capSetting(input: { value: string | null }, expected: unknown): Finding {
  try {
    return compare(expected, { cap: sandboxCap(input.value) });
  } catch (error) {
    if (error instanceof BadSandboxCap) return compare(expected, { error: 'not_a_positive_integer' });
    throw error;
  }
}

function trialName(input: { session_id: string }, expected: unknown): Finding {
  return compare(expected, { trial_name: trialNameOf(input.session_id) });
}

export const e2b: FamilyAdapter = { family: 'e2b', kinds: { ledger, reap, capacity, cap_setting: capSetting, trial_name: trialName } };
