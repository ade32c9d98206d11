import { COUNTERS, type Reconciliation, reconcile } from './books.ts';
import type { ChaosRun } from './chaos-run.ts';
import { lostChecks } from './check-lost.ts';
import { lineageFaults, lineageOf, type TrainedStep } from './lineage.ts';
import { trainedSteps } from './rows.ts';

/** One promise, what it demands and what was found. */
export type Check = { readonly check: string; readonly expected: string; readonly found: string; readonly ok: boolean };

/** Every promise of docs/durability.md, looked at in what a chaos run left. */
export function checksOf(run: ChaosRun): Check[] {
  const reconciled = reconcile(run.calls, run.books);
  return [
    ended(run),
    ...kills(run),
    ...updates(run, trainedSteps(run.rows)),
    rowsOfSteps(run),
    finishedOnce(run),
    ...books(run, reconciled),
    ...lostChecks(run, reconciled),
    ...leftovers(run),
  ];
}

const check = (name: string, expected: string | number, found: string | number, ok = expected === found): Check => ({
  check: name,
  expected: `${expected}`,
  found: `${found}`,
  ok,
});

function ended({ result, failure }: ChaosRun): Check {
  return check('run finished', 'accepted', result?.outcome ?? `failed: ${failure}`);
}

function kills({ kills, planned }: ChaosRun): Check[] {
  const met = kills.filter((kill) => kill.met);
  const pending = met.filter(({ moment }) => moment === 'optim_step').length;
  const unrecovered = kills.filter(({ recoveredMs, number }) => recoveredMs === null && number < planned);
  return [
    check('kills that came', planned, kills.length),
    check(
      'kills at their moment',
      'all, some while an update was pending',
      `${met.length}, ${pending}`,
      met.length === kills.length && pending > 0,
    ),
    check(
      'kills that the run got over',
      'all',
      unrecovered.length === 0 ? 'all' : `not ${unrecovered.map(({ number }) => number).join(', ')}`,
    ),
  ];
}

function updates({ result, calls }: ChaosRun, steps: readonly TrainedStep[]): Check[] {
  if (!result?.weights) return [check('each update once in the final weights', 'final weights', 'none', false)];
  const { statePath, samplerPath } = result.weights;
  const expected = steps.reduce((sum, { updates }) => sum + updates, 0);
  const [state, sampler] = [lineageOf(calls, statePath), lineageOf(calls, samplerPath)];
  const faults = [...lineageFaults(state, steps), ...(sameUpdates(state, sampler) ? [] : ['sampler and state have other updates'])];
  const applied = calls.filter(({ kind, failed }) => kind === 'optim_step' && failed === null).length;
  const found = `${state.updates.length} over ${state.models.length} model(s), ${applied} carried out in all`;
  return [
    check(
      'each update once in the final weights',
      `${expected} in the order of the rows`,
      faults.length === 0 ? found : faults.join('; '),
      faults.length === 0,
    ),
  ];
}

const sameUpdates = (a: ReturnType<typeof lineageOf>, b: ReturnType<typeof lineageOf>) =>
  JSON.stringify(a.updates.map(({ gradients }) => gradients)) === JSON.stringify(b.updates.map(({ gradients }) => gradients));

function rowsOfSteps({ rows, steps }: ChaosRun): Check {
  const found = rows.map((row) => (JSON.parse(row) as { step: number }).step);
  const wanted = Array.from({ length: steps }, (_, i) => i + 1);
  const ok = JSON.stringify(found) === JSON.stringify(wanted);
  const odd = wanted.filter((step) => found.filter((other) => other === step).length !== 1);
  return check(
    'rows in metrics.jsonl',
    `${steps}, one a step`,
    `${found.length}${ok ? '' : `; not once: ${odd.join(', ') || 'out of order'}`}`,
    ok,
  );
}

/** A trial that ended is never begun again: history has one result for each id, and no attempt that began later. */
function finishedOnce({ books, history }: ChaosRun): Check {
  const ids = books.trials.map(({ summary }) => summary.trialId);
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  const begun = history.activities.filter(({ type, input }) => type === 'runTrial' && input !== null);
  const again = begun.length - new Set(begun.map(({ input }) => (input as { trialId: string }).trialId)).size;
  const attempts = books.trials.reduce((sum, trial) => sum + trial.attempts - 1, 0);
  const found = `${ids.length} trials, ${twice.length + again} run again; ${attempts} attempts died`;
  return check('finished trials that were run again', 'none', found, twice.length === 0 && again === 0);
}

function books(run: ChaosRun, found: Reconciliation): Check[] {
  const sums = COUNTERS.map((counter) => {
    const { trainer, booked, lost } = found;
    return check(
      `${counter} tokens: trainer = booked + lost`,
      trainer[counter],
      `${booked[counter]} + ${lost[counter]}`,
      trainer[counter] === booked[counter] + lost[counter],
    );
  });
  const { unknownToRun, unknownToTrainer } = found;
  // Preflight's calls are booked as a sum: their tokens are in the rows above.
  const firstTrialsMs = Math.min(...run.history.children.map(({ startedAtMs }) => startedAtMs));
  const unknown = unknownToRun.filter(({ at }) => Date.parse(at) >= firstTrialsMs);
  return [
    ...sums,
    check('calls that only the trainer knows', 0, unknown.length),
    check('answers that only the run knows', 0, unknownToTrainer.length),
  ];
}

function leftovers({ leftovers: { processes, folders, seen }, exitCode }: ChaosRun): Check[] {
  const commands = processes.map(({ pid, command }) => `${pid} ${command.slice(0, 60)}`);
  return [
    check(
      'processes and sandboxes left',
      'none',
      processes.length === 0 ? `none of ${seen.processes} seen, ${seen.sandboxes} in sandboxes` : commands.join('; '),
      processes.length === 0,
    ),
    check('scratch folders left', 'none', folders.length === 0 ? `none of ${seen.folders} seen` : folders.join(' '), folders.length === 0),
    check('exit code of `stillroom up`', 0, exitCode ?? 'none'),
  ];
}
