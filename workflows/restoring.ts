import type { SavedPath } from '../core/training/checkpoint-ledger.ts';
import type { Run } from './run.ts';
import { publish, refreshSampler, saveCheckpoint, saveState } from './saving.ts';
import { WARMUP_STATE } from './warm-up.ts';

/**
 * Saves and publishes again what expired while the run waited: the weights are those of the model in training, which goes on or is rebuilt
 * from what is left. What was said of final weights is said again of the new ones.
 */
export async function restoreSaved(run: Run, gone: ReadonlySet<SavedPath>): Promise<void> {
  const { facts } = run;
  if (facts.training === null) return;
  if (facts.sampler === null) await refreshSampler(run);
  else if (facts.published === null) await publish(run);
  if (facts.savedState === null) await restoreState(run);
  const { weights } = facts;
  if (weights && (gone.has(weights.statePath) || gone.has(weights.samplerPath))) await restoreFinal(run);
}

async function restoreState(run: Run): Promise<void> {
  const { facts } = run;
  if (facts.step > 0 || run.pinned.branch) await saveCheckpoint(run);
  else if (facts.warmup?.statePath) {
    const statePath = await saveState(run, WARMUP_STATE);
    facts.warmup = { ...facts.warmup, statePath };
    facts.checkpoints = { ...facts.checkpoints, warmupState: statePath };
  }
}

async function restoreFinal(run: Run): Promise<void> {
  const before = run.facts.weights;
  const [statePath, samplerPath] = [await saveState(run), await refreshSampler(run)];
  run.facts.weights = { statePath, samplerPath };
  if (before?.statePath === statePath && before.samplerPath === samplerPath) return;
  run.facts.handoff = null;
  run.facts.adapter = null;
}
