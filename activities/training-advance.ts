import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { usdOf } from '../core/measures/spend.ts';
import type { Usage } from '../core/measures/usage.ts';
import { type CallResult, compareWithPlan, type Moments, nextSeqIdOf, type Opened, timesLost } from '../core/training/journal.ts';
import { usageOf } from '../core/training/journal-usage.ts';
import type { JournalPlace, TrainingRef } from '../core/training/plan.ts';
import { rebuildNotice } from '../core/training/rebuild.ts';
import { type SelfTest, selfTest } from '../core/training/self-test.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { ServiceFailed, SessionLost, type TinkerClient, TrainingStateUnknown } from '../services/tinker/index.ts';
import { thisAttempt } from './attempt.ts';
import type { BatchDeps } from './batch-updates.ts';
import { namingBilling } from './billing.ts';
import type { ModelAccess } from './model-access.ts';
import type { RunRecord } from './run-records.ts';
import { type CalledModel, makeCall } from './training-call.ts';
import { TrainingJournal } from './training-journal.ts';
import { lost, makeModel } from './training-model.ts';
import type { Operation } from './training-operations.ts';
import { type PlannedCall, plannedCalls, replayOf } from './training-replay.ts';

export type AdvanceDeps = BatchDeps & { readonly objects: ObjectStore; readonly models: ModelAccess };

/** A point of a plan: `at` is null before its first model. */
export type PlanPoint = Pick<TrainingRef, 'base' | 'head'> & { readonly at: JournalPlace | null };

export type Advanced = {
  /** Of the calls that were wanted, in their order. */
  readonly results: readonly CallResult[];
  readonly at: JournalPlace;
  /** All that was sent since `point`, also by attempts that died and for models that were lost. */
  readonly usage: Usage;
  readonly notices: readonly string[];
  /** How the moments of a model that was opened for this came about; null where the one of `point` was gone on with. */
  readonly moments: Moments | null;
};

/**
 * Makes calls of the model that stands at a point of the plan, each once in the life of the weights that are kept. Calls that an
 * earlier attempt has made are not made again: what it journalled is used or waited for. Where the model is lost, or nobody can say what
 * reached it, another one is made from saved state and trained on the same batches first.
 */
export async function advance(deps: AdvanceDeps, record: RunRecord, point: PlanPoint, wanted: readonly Operation[]): Promise<Advanced> {
  const journal = await TrainingJournal.takeOver(deps.objects, record.runId, thisAttempt(), point.at);
  for (;;) {
    await using turn = new Turn(deps, record, journal, point);
    try {
      return await turn.run(wanted);
    } catch (error) {
      const isOfService = isLostWith(error);
      if (!isOfService && !(error instanceof ModelUseless)) throw namingBilling(error);
      await journal.next(error.message, { lost: isOfService });
      const times = timesLost(journal.generations);
      if (times >= MOST_LOST) throw lost(`it was lost ${times} times in a row at the same place, the last time because: ${error.message}`);
    }
  }
}

/** Each rebuild is paid for: a service that loses every model is not asked for ever. */
const MOST_LOST = 5;

/** The newest generation's model is not one to go on with. */
class ModelUseless extends Error {}

const isLostWith = (error: unknown): error is SessionLost | TrainingStateUnknown | ServiceFailed =>
  error instanceof SessionLost || error instanceof TrainingStateUnknown || error instanceof ServiceFailed;

/** One try at the newest generation. */
class Turn implements AsyncDisposable {
  readonly #deps: AdvanceDeps;
  readonly #record: RunRecord;
  readonly #journal: TrainingJournal;
  readonly #point: PlanPoint;
  /** Of the model's session; opened when the first call is made. */
  #client: TinkerClient | null = null;

  constructor(deps: AdvanceDeps, record: RunRecord, journal: TrainingJournal, point: PlanPoint) {
    this.#deps = deps;
    this.#record = record;
    this.#journal = journal;
    this.#point = point;
  }

  async run(wanted: readonly Operation[]): Promise<Advanced> {
    const { head, at } = this.#point;
    const stays = at?.generation === this.#journal.place.generation;
    if (this.#journal.standing.abandoned !== null) throw new ModelUseless(this.#journal.standing.abandoned);
    const opened = stays ? null : (this.#journal.standing.opened ?? (await this.#open()));
    const replay = opened ? await replayOf(opened.origin, head, this.#record, this.#deps) : [];
    if (replay === null) throw new ModelUseless('its model has been trained on batches that are not in the plan');
    const calls = [...replay, ...plannedCalls(wanted)];
    const decision = compareWithPlan(
      this.#journal.standing,
      calls.map(({ name }) => name),
    );
    if (decision.kind === 'anew') throw new ModelUseless(decision.cause);

    const model = opened ?? (at as JournalPlace);
    const results = [...decision.done];
    let test = await this.#judge(opened, calls, results);
    for (const call of calls.slice(results.length)) {
      cancellationSignal().throwIfAborted();
      const pending = results.length === decision.done.length ? decision.pending : null;
      this.#client ??= await this.#deps.models.joinSession(model.sessionId);
      results.push(await makeCall(this.#client, this.#journal, model, await call.operation(), pending));
      test = await this.#judge(opened, calls, results);
    }
    return {
      results: results.slice(replay.length),
      at: { ...this.#journal.place, ...modelOf(model), nextSeqId: nextSeqIdOf(this.#journal.standing, model.nextSeqId) },
      usage: usageOf(this.#journal.generations),
      moments: opened?.moments ?? null,
      notices: opened && test && at ? [this.#notice(opened, test, replay, wanted)] : [],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.leave();
  }

  /** The next generation's model, in a session of its own. */
  async #open(): Promise<Opened> {
    const client = await this.#deps.models.openSession();
    this.#client = client;
    const { sessionId } = client;
    const { modelId, nextSeqId, origin, moments } = await makeModel(client, this.#point, this.#record, this.#deps.blobs);
    await this.#journal.write({ is: 'opened', sessionId, modelId, nextSeqId, origin, moments });
    await this.#endEarlierSessions(client);
    const { opened } = this.#journal.standing;
    if (!opened) throw new RangeError('what was written is in the journal');
    return opened;
  }

  /** Models that were given up need not be kept by the service, and nobody who still holds one may train it. */
  async #endEarlierSessions(client: TinkerClient): Promise<void> {
    const earlier = this.#journal.generations.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.is === 'opened' ? [entry.sessionId] : [])),
    );
    const given = this.#point.at ? [this.#point.at.sessionId, ...earlier] : earlier;
    await Promise.all(
      given.filter((id) => id !== client.sessionId).map((id) => client.endSession(id, 'errored', 'replaced by a rebuilt model')),
    );
  }

  /** Fails with `RebuildDiffers` where a rebuilt model shows other losses than the lost one. */
  async #judge(opened: Opened | null, calls: readonly PlannedCall[], results: readonly CallResult[]): Promise<SelfTest | null> {
    if (!opened) return null;
    const comparisons = calls.flatMap(({ seen }, i) => (seen && results[i] ? [{ ...seen, again: results[i].loss ?? null }] : []));
    const test = selfTest(opened.moments, comparisons);
    if (test.differs === null) return test;
    const from = opened.origin.path ?? 'a fresh adapter';
    await this.#journal.write({ is: 'abandoned', cause: `it differs from the one it was to replace: ${test.differs}`, lost: false });
    const message = `training was rebuilt from ${from}, but the model is another one: ${test.differs}. Nothing more was trained. The service restores state wrongly, or what a batch is made of has changed; start a new run from a saved state`;
    throw ApplicationFailure.nonRetryable(message, 'RebuildDiffers');
  }

  #notice(opened: Opened, { moments }: SelfTest, replay: readonly PlannedCall[], wanted: readonly Operation[]): string {
    const newer = this.#journal.generations.filter(({ number }) => number > (this.#point.at?.generation ?? 0));
    const cause = newer.flatMap(({ entries }) => entries).find((entry) => entry.is === 'open')?.cause ?? 'unknown';
    const names = new Set(wanted.map(({ name }) => name));
    const again = newer.map(({ entries, ...rest }) => ({
      ...rest,
      entries: entries.filter((entry) => entry.is === 'intent' && !names.has(entry.call)),
    }));
    const tokens = usageOf(again).meters.student_train ?? 0;
    const usd = usdOf(this.#record.config.pricing, 'student_train', tokens);
    const batches = new Set(replay.flatMap(({ batch }) => (batch === null ? [] : [batch]))).size;
    return rebuildNotice({ cause, origin: opened.origin, moments, batches, tokens, usd });
  }
}

const modelOf = ({ sessionId, modelId }: CalledModel) => ({ sessionId, modelId });
