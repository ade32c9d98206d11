import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef, SamplerPath, StatePath } from '../core/ids.ts';
import { addUsage, type Usage } from '../core/measures/usage.ts';
import type { KeptTrials, PlayedSlot } from '../core/run/kept-trials.ts';
import type { TrainResult } from '../core/run/results.ts';
import { saveLife } from '../core/training/checkpoint-lives.ts';
import type { Moments } from '../core/training/journal.ts';
import { type BatchSource, FRESH_ADAPTER, type PlanBase, type PlannedState, type TrainingRef } from '../core/training/plan.ts';
import { SavedStates } from '../services/blobs/saved-states.ts';
import { ServiceFailed } from '../services/tinker/index.ts';
import { stepUpdates } from './batch-updates.ts';
import { whileBeating } from './beating.ts';
import { readTrials } from './kept-trials.ts';
import { entriesBack, keepEntry } from './plan-store.ts';
import type { RunRecord, RunRecords } from './run-records.ts';
import { warmUpSampler } from './sampler-warm-up.ts';
import { type AdvanceDeps, advance } from './training-advance.ts';
import { trainPlanned } from './training-batch.ts';
import { probeOperation, samplerOperation, stateOperation } from './training-operations.ts';

export type OpenOrder = {
  readonly run: BlobRef;
  /** What the student starts from; a fresh adapter where it is absent. */
  readonly base?: PlanBase;
};
/** `notice`: how the saved state was loaded that it starts from; absent for a fresh adapter. */
export type OpenedTraining = TrainingRef & { readonly notice?: string };
export type BatchOrder = {
  readonly run: BlobRef;
  readonly step: number;
  /** The weights the batch was sampled from. */
  readonly sampler: string;
  readonly training: TrainingRef;
  /** All of the batch; those that were scored are trained on. */
  readonly trials: KeptTrials;
};
export type SaveOrder = { readonly run: BlobRef; readonly training: TrainingRef; readonly name: string };

/** What was saved, and where training stands after it. */
export type Saved<Path> = Usage & { readonly path: Path; readonly training: TrainingRef; readonly notices: readonly string[] };

export type TrainingDeps = AdvanceDeps & { readonly records: RunRecords };
export type TrainingActivities = ReturnType<typeof createTrainingActivities>;

/**
 * Training calls of a run. Each is made once in the life of the weights that are kept: an attempt that comes again goes on where the one
 * before it ended, and a model that the service has lost is rebuilt (`advance`).
 */
export function createTrainingActivities({ records, ...deps }: TrainingDeps) {
  const { blobs, models } = deps;
  const onTraining = <T>(run: BlobRef, work: (record: RunRecord) => Promise<T>) =>
    whileBeating(async () => work(await records.load(run)), models.longestWait);

  return {
    /** Makes the student: a fresh LoRA on its base model, or one from saved state. */
    openTraining({ run, base = FRESH_ADAPTER }: OpenOrder): Promise<OpenedTraining> {
      return onTraining(run, async (record) => {
        const { at, moments } = await advance(deps, record, { base, head: null, at: null }, []);
        const notice = base.statePath === null ? {} : { notice: loadedNotice(base.statePath, moments) };
        return { base, head: null, updates: base.updates, at, ...notice };
      });
    },

    /** The optimizer updates of a scored batch, `num_substeps` of them where it has so many sequences. */
    async trainBatch(order: BatchOrder): Promise<TrainResult> {
      const startedAtMs = Date.now();
      return onTraining(order.run, async (record) => {
        const trials = await readTrials(order.trials, blobs);
        refuseMasked(order.step, trials);
        const source = { kind: 'step', step: order.step, episodes: scoredEpisodes(trials) } as const;
        const { figures, ...updates } = await stepUpdates(source, record, deps);
        const { seen, gradNorms, ...trained } = await trainPlanned(deps, record, order.training, source, updates);
        const losses = seen.map(({ loss }) => loss);
        return { ...trained, trained: { ...figures, losses, gradNorms }, wallMs: Date.now() - startedAtMs };
      });
    },

    /**
     * Publishes the weights as they are now, under `name`, for sampling, and asks them for their first tokens. A service that answers a path
     * without keeping it is found out here.
     */
    saveSampler({ run, training, name }: SaveOrder): Promise<Saved<SamplerPath>> {
      return onTraining(run, async (record) => {
        const { results, at, usage, notices } = await advance(deps, record, training, [samplerOperation(name, saveLife(record.config))]);
        const path = pathIn(results[0]) as SamplerPath;
        await models.withClient((client) => client.checkpoints.assertListed(path)).catch((error) => Promise.reject(asNotKept(error)));
        const sampler = { kind: 'sampler', model: record.config.student.base_model, path, version: name } as const;
        const ids = await probeTokens(deps, training.head);
        const first = await warmUpSampler({ runId: record.runId, name, sampler, ids }, deps);
        return { path, training: { ...training, at }, notices: [...notices, ...first.notices], ...addUsage(usage, first.usage) };
      });
    },

    /** Saves weights and optimizer state, so that training can go on from here, with the loss of a small sequence to know them by. */
    saveState({ run, training, name }: SaveOrder): Promise<Saved<StatePath>> {
      return onTraining(run, async (record) => {
        const tokens = await probeTokens(deps, training.head);
        const probes = tokens.length < 2 ? [] : [probeOperation(tokens, `after ${training.updates} updates`)];
        const { results, at, usage, notices } = await advance(deps, record, training, [
          ...probes,
          stateOperation(name, saveLife(record.config)),
        ]);
        const path = pathIn(results.at(-1)) as StatePath;
        const lossNats = probes.length > 0 ? (results[0]?.loss ?? null) : null;
        const probe = lossNats === null ? null : { tokens, lossNats };
        const { updates, head: previous } = training;
        const entry: PlannedState = { is: 'state', name, path, probe, updates, previous };
        const head = await keepEntry(blobs, record.runId, entry);
        await new SavedStates(deps.objects, record.runId).note({ name, path, updates, savedAtMs: Date.now() });
        return { path, training: { ...training, head, at }, notices, ...usage };
      });
    },

    /** Ends the session of a training that is over. A service that cannot be told ends it by itself some day. */
    async closeTraining({ training }: { readonly training: TrainingRef }): Promise<void> {
      await whileBeating(() => models.withClient((client) => client.endSession(training.at.sessionId)).catch(() => {}));
    },
  };
}

function loadedNotice(path: StatePath, moments: Moments | null): string {
  return moments === 'loaded'
    ? `training starts from ${path}, with its optimizer moments`
    : `training starts from ${path} without its optimizer moments, which the service did not restore: the first updates may be rougher`;
}

/** What is trained on, in the order of the slots. */
const scoredEpisodes = (trials: readonly PlayedSlot[]): Extract<BatchSource, { kind: 'step' }>['episodes'] =>
  trials.flatMap(({ score }) => (score?.scored ? [{ scored: score.scored, candidates: score.candidates }] : []));

/** A small sequence of the newest batch; empty when none was trained on. */
async function probeTokens({ blobs }: AdvanceDeps, head: BlobRef | null): Promise<readonly number[]> {
  for await (const { entry } of entriesBack(blobs, head)) if (entry.is === 'batch') return entry.probeTokens;
  return [];
}

function pathIn(result: { readonly path?: string | undefined } | undefined): string {
  if (result?.path === undefined) throw new RangeError('a save brings a path');
  return result.path;
}

/** A list may lag behind a save, but not for ever. */
const LOOKS_FOR_A_SAVE = 5;

function asNotKept(error: unknown): unknown {
  if (!(error instanceof ServiceFailed) || activityInfo().attempt < LOOKS_FOR_A_SAVE) return error;
  return ApplicationFailure.nonRetryable(
    `the service does not keep what it says it has saved: ${error.message}. Ask its operator; the state that was saved before is kept there`,
    'SaveNotKept',
  );
}

/** Largest share of a batch's sampled tokens whose log-probabilities may be unusable. */
const MOST_MASKED = 0.01;

/** A service that loses log-probabilities must not be trained on. */
function refuseMasked(step: number, trials: readonly PlayedSlot[]): void {
  const total = (key: 'sampledTokens' | 'maskedTokens') => trials.reduce((sum, { trial }) => sum + trial[key], 0);
  const [sampledTokens, maskedTokens] = [total('sampledTokens'), total('maskedTokens')];
  if (maskedTokens <= MOST_MASKED * sampledTokens) return;
  throw ApplicationFailure.nonRetryable(
    `step ${step}: ${maskedTokens} of ${sampledTokens} sampled tokens came without a usable log-probability, more than ${MOST_MASKED * 100} %: the sampling service is at fault, or the student's weights are no longer usable (is train.learning_rate too high?)`,
    'UnusableLogprobs',
  );
}
