import { CancellationScope } from '@temporalio/workflow';
import type { SamplerPath, StatePath } from '../core/ids.ts';
import type { Usage } from '../core/measures/usage.ts';
import type { TrainingRef } from '../core/run/results.ts';
import { stepName } from '../core/run/step-name.ts';
import type { PublishedSampler } from '../core/run/trial.ts';
import { withCheckpoint } from '../core/training/checkpoints.ts';
import { billingPauseIn } from './broken-off.ts';
import { training } from './proxies.ts';
import type { Run } from './run.ts';
import { paid } from './run-money.ts';

/** Publishes the current weights, and samples the next steps from them. */
export async function refreshSampler(run: Run): Promise<SamplerPath> {
  const published = await publish(run);
  run.facts.sampler = published;
  return published.path;
}

/** Publishes the current weights for sampling as `step-NNNN`, once. What the steps sample from stays as it is. */
export async function publish(run: Run): Promise<PublishedSampler> {
  const name = stepName(run.facts.step);
  if (run.facts.published?.version === name) return run.facts.published;
  const order = { run: run.pinned.ref, training: run.training, name: freeName(run, 'sampler', name) };
  const summary = `${name} · sampler`;
  // A save that was started is finished and booked, whatever happens to the run around it.
  const saved = await paid(run, () =>
    CancellationScope.nonCancellable(() => training(run.pinned.plan).saveSampler.executeWithOptions({ summary }, [order])),
  );
  run.facts.published = { kind: 'sampler', model: run.pinned.plan.student.model, path: saved.path, version: name };
  await bookCall(run, saved);
  run.keeping.saved({ path: saved.path, kind: 'sampler', name, step: run.facts.step });
  return run.facts.published;
}

/** Saves the current training state as `step-NNNN` or under another name, once: a service refuses a name that is taken. */
export async function saveState(run: Run, name = stepName(run.facts.step)): Promise<StatePath> {
  return paid(run, () => saveStateUnpaid(run, name));
}

async function saveStateUnpaid(run: Run, name: string): Promise<StatePath> {
  const { savedState } = run.facts;
  if (savedState?.name === name) return savedState.path;
  const saved = await CancellationScope.nonCancellable(() =>
    training(run.pinned.plan).saveState.executeWithOptions({ summary: `${name} · state` }, [
      { run: run.pinned.ref, training: run.training, name: freeName(run, 'state', name) },
    ]),
  );
  run.facts.savedState = { name, path: saved.path };
  await bookCall(run, saved);
  run.keeping.saved({ path: saved.path, kind: 'state', name, step: run.facts.step });
  return saved.path;
}

/** What the service keeps it under: what expired may still hold its name there. */
function freeName({ facts }: Run, kind: 'sampler' | 'state', name: string): string {
  const before = facts.ledger.entries.filter((entry) => entry.kind === kind && entry.name === name).length;
  return before === 0 ? name : `${name}-${before + 1}`;
}

/** Saves the state that the last finished step left, and enters it in the book, with its sampler where it was published. */
export async function saveCheckpoint(run: Run): Promise<StatePath> {
  const statePath = await saveState(run);
  enterCheckpoint(run, statePath);
  return statePath;
}

function enterCheckpoint(run: Run, statePath: StatePath): void {
  const { step, published } = run.facts;
  const samplerPath = published?.version === stepName(step) ? published.path : null;
  run.facts.checkpoints = withCheckpoint(run.facts.checkpoints, { step, statePath, samplerPath });
}

/**
 * Saves what was trained since the last save, before a wait that may outlast the training on the service. Weights that an update is changing
 * are left alone; a service that wants payment for the save as well must be paid first.
 */
export async function saveBeforeWaiting(run: Run): Promise<void> {
  const { training: opened, updateBegun, weights, step, warmup, checkpoints } = run.facts;
  if (!opened || updateBegun || weights !== null) return;
  const warming = step === 0 && warmup !== null && warmup.updates > 0 && warmup.statePath === null;
  if (step === 0 && !warming) return;
  try {
    const statePath = await saveStateUnpaid(run, warming ? `warmup-${String(warmup.updates).padStart(4, '0')}` : stepName(step));
    if (warming) run.facts.checkpoints = { ...checkpoints, warmupState: statePath };
    else enterCheckpoint(run, statePath);
  } catch (error) {
    if (billingPauseIn(error) === null) throw error;
    run.note('the training state could not be saved before the wait: the service wants payment first');
  }
}

/** Where training stands after a call, what that cost, and what a person should know of it. */
async function bookCall(run: Run, call: Usage & { readonly training: TrainingRef; readonly notices: readonly string[] }): Promise<void> {
  run.facts.training = call.training;
  for (const notice of call.notices) run.note(notice);
  if (Object.keys(call.meters).length > 0) await run.bookBeside(call);
}
