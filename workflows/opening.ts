import { ApplicationFailure, patched, workflowInfo } from '@temporalio/workflow';
import { z } from 'zod';
import { PREFLIGHT_BOOK } from '../core/recordings/book-name.ts';
import { branchText, startOf } from '../core/run/branch.ts';
import { costText, needsConfirmation } from '../core/run/cost-confirmation.ts';
import type { Outcome } from '../core/run/phase.ts';
import type { Check } from '../core/run/results.ts';
import { StartInput } from '../core/run/start-input.ts';
import { openBaselines } from './baselines.ts';
import { openBranched } from './branching.ts';
import { briefActivities, modelChecks, resolving, sandboxChecks } from './proxies.ts';
import { counted } from './read-books.ts';
import type { Run } from './run.ts';
import { unlessStopped } from './run-child.ts';
import { paid } from './run-money.ts';

/** From the input to baselines: everything before the first cent is spent on training. Returns an outcome if the run ends here. */
export async function openRun(run: Run, input: unknown): Promise<Outcome | null> {
  await run.phase('resolve', () => resolve(run, input));
  await run.phase('estimate', async () => {
    run.facts.estimate = await briefActivities().estimateRun({ run: run.pinned.ref });
  });
  if (!(await run.phase('confirm', () => confirmed(run)))) return 'declined';
  await run.phase('preflight', () => preflight(run));
  await run.phase('baselines', () => openBaselines(run));
  return null;
}

async function resolve(run: Run, input: unknown): Promise<void> {
  const parsed = StartInput.safeParse(input);
  if (!parsed.success) throw ApplicationFailure.nonRetryable(`the run's input: ${z.prettifyError(parsed.error)}`, 'BadRunInput');
  const { workflowId, firstExecutionRunId } = workflowInfo();
  const pinned = await resolving().resolveRun({ runId: workflowId, executionId: firstExecutionRunId, input: parsed.data });
  run.facts.pinned = pinned;
  if (pinned.branch) run.facts.ledger = { ...run.facts.ledger, start: startOf(pinned.branch) };
  run.desk.maxUsd ??= pinned.plan.maxUsd; // a person may have set it before
  for (const warning of pinned.warnings) run.note(warning);
}

/** `yes` skips the question only where the whole cost is known or capped; anything else needs a person. */
async function confirmed(run: Run): Promise<boolean> {
  const { estimate } = run.facts;
  if (estimate && estimate.unpricedMeters.length > 0)
    run.note(`no price for ${estimate.unpricedMeters.join(', ')}: neither the estimate nor a cap can see them`);
  const known = { fullyPriced: estimate?.fullyPriced ?? false, maxUsd: run.desk.maxUsd };
  if (!needsConfirmation({ ...known, yes: run.pinned.yes })) return true;
  const cost = estimate ? costText(estimate) : 'unknown cost';
  const from = run.pinned.branch ? ` from ${branchText(run.pinned.branch)}` : '';
  const answer = await run.desk.ask('cost', `Start this run${from}? ${cost}.`, [
    ...run.commands('confirmCost'),
    ...run.commands('declineCost'),
  ]);
  await run.breathe();
  return answer?.message === 'confirmCost';
}

async function preflight(run: Run): Promise<void> {
  const { branch } = run.pinned;
  if (branch) await check(run, async () => [await modelChecks().checkBranch({ run: run.pinned.ref })]);
  // A broken benchmark is found before the first model is asked: that is paid for.
  const isDryRunFirst = patched('dry-run-before-models');
  if (isDryRunFirst) await checkSandbox(run);
  await checkModels(run);
  if (!isDryRunFirst) await checkSandbox(run);
  if (branch) await openBranched(run);
}

async function checkModels(run: Run): Promise<void> {
  const { checks, usage } = await paid(run, () =>
    counted(run, [PREFLIGHT_BOOK], () => unlessStopped(run, () => modelChecks().checkModels({ run: run.pinned.ref }))),
  );
  run.facts.checks = [...run.facts.checks, ...checks];
  await run.book(usage);
  failOn(run);
}

async function checkSandbox(run: Run): Promise<void> {
  await check(run, () => sandboxChecks(run.pinned.plan).checkSandbox({ run: run.pinned.ref }));
}

async function check(run: Run, work: () => Promise<readonly Check[]>): Promise<void> {
  const checks = await unlessStopped(run, work);
  run.facts.checks = [...run.facts.checks, ...checks];
  for (const warning of checks.flatMap(({ warnings = [] }) => warnings)) run.note(warning);
  failOn(run);
}

function failOn(run: Run): void {
  const failed = run.facts.checks.filter((check) => !check.ok);
  run.board.refresh();
  if (failed.length > 0)
    throw ApplicationFailure.nonRetryable(failed.map((check) => `${check.name}: ${check.detail}`).join('\n'), 'PreflightFailed', failed);
}
