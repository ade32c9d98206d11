import { setCurrentDetails, setHandler, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { METERS, type Meter } from '../core/measures/meters.ts';
import { solveRateOf } from '../core/measures/rates.ts';
import { isUnknown, unpricedIn } from '../core/measures/spend.ts';
import { addUsage, lostCalls } from '../core/measures/usage.ts';
import { summaryOf } from '../core/training/checkpoint-view.ts';
import { currentDetails } from './current-details.ts';
import { estimateQuery, metricsQuery, type RunSpend, type RunStatus, spendQuery, statusQuery } from './messages.ts';
import type { RunDesk } from './run-desk.ts';
import { forecastOf, pinsIn, type RunFacts, resumeOf } from './run-state.ts';
import { SEARCH_ATTRIBUTES } from './search-attributes.ts';

/** Shows a run to the world: queries, search attributes and the Web UI's current details. Decides nothing. */
export class RunBoard {
  child: { readonly workflowId: string; readonly label: string; readonly reservedUsd: number } | null = null;
  private readonly facts: RunFacts;
  private readonly desk: () => RunDesk;
  private shown = '';

  constructor(facts: RunFacts, desk: () => RunDesk) {
    this.facts = facts;
    this.desk = desk;
    setHandler(statusQuery, () => this.status());
    setHandler(estimateQuery, () => this.facts.estimate);
    setHandler(spendQuery, () => this.spend());
    setHandler(metricsQuery, () => ({
      rows: this.facts.rows,
      rowsInAll: this.facts.rowsInAll,
      file: this.facts.pinned && `${this.facts.pinned.runDir}/metrics.jsonl`,
    }));
  }

  spend(): RunSpend {
    const { spend, usage, openUsage } = this.facts;
    const taken = addUsage(usage, openUsage);
    return {
      ...spend,
      blindTo: this.blindTo(),
      maxUsd: this.desk().maxUsd,
      forecastUsd: forecastOf(this.facts),
      reservedUsd: this.child?.reservedUsd ?? 0,
      sent: taken.sent,
      lostCalls: lostCalls(taken),
    };
  }

  /** Meters without a price that counted something or, while the run goes on, are expected to. */
  private blindTo(): readonly Meter[] {
    const { spend, estimate, phase } = this.facts;
    const expected = phase === 'ended' ? [] : unpricedIn((estimate?.lines ?? []).filter(({ tokens }) => tokens > 0));
    return METERS.filter((meter) => spend.blindTo.includes(meter) || expected.includes(meter));
  }

  /** USD spent, as far as it is known: of meters without any price nobody can say that they cost nothing. */
  private knownUsd(): number | null {
    const { spend, estimate } = this.facts;
    const unknown =
      spend.lines.length > 0 ? isUnknown(spend) : estimate !== null && isUnknown({ ...estimate, blindTo: estimate.unpricedMeters });
    return unknown ? null : spend.usd;
  }

  status(): RunStatus {
    const { pinned, rows, ...facts } = this.facts;
    const { latest, restoreFrom } = resumeOf(this.facts);
    const { updates = 0, lossNatsPerToken = null } = facts.warmup ?? {};
    const warmupSteps = pinned?.plan.warmup.steps ?? 0;
    return {
      runId: workflowInfo().workflowId,
      phase: facts.phase,
      waitingFor: this.desk().waitingFor,
      outcome: facts.outcome,
      step: facts.step,
      steps: pinned?.plan.steps ?? 0,
      student: pinned?.plan.student.model ?? null,
      teacher: pinned?.plan.teacher.model ?? null,
      agent: pinned && `${pinned.agent.name}@${pinned.agent.ref}`,
      runDir: pinned?.runDir ?? null,
      branch: pinned?.branch ?? null,
      child: this.child && { workflowId: this.child.workflowId, label: this.child.label },
      checks: facts.checks,
      evaluations: facts.evaluations,
      interim: facts.interim,
      lastRow: rows.at(-1) ?? null,
      warmup: warmupSteps > 0 ? { updates, steps: warmupSteps, lossNatsPerToken } : null,
      verdict: facts.verdict,
      adapter: facts.adapter,
      handoff: facts.handoff,
      weights: facts.weights,
      resume: { latest, restoreFrom },
      checkpoints: summaryOf(facts.ledger, pinsIn(this.facts), Date.now()),
      spend: this.spend(),
      usage: facts.usage,
      decisions: this.desk().decisions,
      notices: facts.notices,
      wallMs: facts.wallMs,
    };
  }

  /** Brings search attributes and current details up to date, where they changed. */
  refresh(): void {
    const { pinned, rows } = this.facts;
    const waitingFor = this.desk().waitingFor?.kind ?? 'nothing';
    const lastRow = rows.at(-1);
    const solveRate = lastRow && solveRateOf(lastRow);
    const spentUsd = this.knownUsd();
    const shown = [this.facts.phase, waitingFor, this.facts.step, solveRate, spentUsd, pinned?.plan.student.model].join('|');
    if (shown !== this.shown) {
      this.shown = shown;
      upsertSearchAttributes([
        { key: SEARCH_ATTRIBUTES.phase, value: this.facts.phase },
        { key: SEARCH_ATTRIBUTES.waitingFor, value: waitingFor },
        { key: SEARCH_ATTRIBUTES.step, value: this.facts.step },
        { key: SEARCH_ATTRIBUTES.spentUsd, value: spentUsd },
        ...(lastRow ? [{ key: SEARCH_ATTRIBUTES.solveRate, value: solveRate ?? null }] : []),
        ...(pinned ? [{ key: SEARCH_ATTRIBUTES.student, value: pinned.plan.student.model }] : []),
        ...(pinned ? [{ key: SEARCH_ATTRIBUTES.teacher, value: pinned.plan.teacher.model }] : []),
      ]);
    }
    setCurrentDetails(currentDetails(this.facts, this.desk().waitingFor, this.spend()));
  }
}
