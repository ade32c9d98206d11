import { ActivityFailure, ApplicationFailure } from '@temporalio/workflow';
import type { Outcome } from '../core/run/phase.ts';
import { closeBaselines } from './baselines.ts';
import { evaluateHoldout } from './evaluations.ts';
import { briefActivities } from './proxies.ts';
import type { Run } from './run.ts';
import { evaluationOf } from './run-state.ts';
import { refreshSampler, saveCheckpoint, saveState } from './saving.ts';
import { closeTraining } from './training-loop.ts';

/** From trained weights to a verdict, and to a promotion if the gate and a person agree. */
export async function closeRun(run: Run): Promise<Outcome> {
  if (run.facts.weights === null) await run.phase('final', () => saveFinal(run));
  await run.phase('evaluation', async () => {
    await evaluateHoldout(run, 'student-after', () => run.sampler);
    await closeBaselines(run);
  });
  const verdict = await run.phase('gate', () => decide(run));
  if (!verdict.accepted) return 'rejected';
  if (!run.pinned.promote) return 'accepted';
  const agreed = await run.phase('approve', () => approved(run));
  await handOver(run);
  return agreed ? run.phase('promote', () => promoted(run)) : 'promotion declined';
}

/** Writes the agent's settings. A file that cannot take them costs nothing that was paid for: the adapter stays, to be handed over by hand. */
async function promoted(run: Run): Promise<Outcome> {
  const { adapter, handoff } = run.facts;
  if (!adapter || !handoff) throw new Error('an accepted gate leaves an adapter and its handoff');
  try {
    const { keyVariable } = await briefActivities().promoteAdapter({ handoff });
    run.note(
      `[models.agent] in .stillroom/settings.toml now uses ${adapter.name} v${adapter.version}; set ${keyVariable} where the agent runs`,
    );
    return 'promoted';
  } catch (error) {
    if (!(error instanceof ActivityFailure && error.cause instanceof ApplicationFailure && error.cause.type === 'SettingsUnusable'))
      throw error;
    run.note(`not promoted: ${error.cause.message}. Mend it, then paste ${handoff.path}`);
    return 'accepted';
  }
}

/** Weights and state are saved before anything else can fail. */
export async function saveFinal(run: Run): Promise<void> {
  await run.lookAround();
  const statePath = await saveState(run);
  const samplerPath = await refreshSampler(run);
  await saveCheckpoint(run);
  run.facts.weights = { statePath, samplerPath };
  await closeTraining(run);
}

async function decide(run: Run) {
  const { facts, pinned } = run;
  const [teacher, before, after] = (['teacher', 'student-before', 'student-after'] as const).map((label) => evaluationOf(facts, label));
  if (!teacher || !before || !after || !facts.weights) throw new Error('the gate needs three evaluations and saved weights');
  const verdict = await briefActivities().decideGate({ run: pinned.ref, teacher, before, after });
  facts.verdict = verdict;
  await handOver(run);
  return verdict;
}

/** Writes the hand-off of the final weights and, for an accepted gate, the adapter version that names them. Does nothing while they stand. */
async function handOver({ facts, pinned, desk }: Run): Promise<void> {
  const { weights, step: steps, verdict } = facts;
  const spend = { ...facts.spend, maxUsd: desk.maxUsd };
  if (!weights || !verdict || facts.handoff) return;
  const handoff = await briefActivities().writeHandoff({ run: pinned.ref, weights });
  if (verdict.accepted) facts.adapter = await briefActivities().writeAdapter({ run: pinned.ref, verdict, weights, handoff, steps, spend });
  facts.handoff = handoff;
}

async function approved(run: Run): Promise<boolean> {
  const { verdict } = run.facts;
  const rates = verdict ? `${percent(verdict.before)} → ${percent(verdict.after)} (teacher ${percent(verdict.teacher)})` : '';
  const answer = await run.desk.ask('promotion', `Promote these weights to the agent? Solved ${rates}.`, [
    ...run.commands('decidePromotion', { approve: true }),
    ...run.commands('decidePromotion', { approve: false }),
  ]);
  await run.breathe();
  return answer?.answer === true;
}

const percent = (rate: number | null) => (rate === null ? '?' : `${(rate * 100).toFixed(1)} %`);
