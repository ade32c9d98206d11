import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { TrainingRef } from '../core/run/results.ts';
import type { CrossEntropyWire, PolicyWire } from '../core/tokens/wire.ts';
import { ServiceFailed, type TrainingClient, TrainingStateUnknown } from '../services/tinker/index.ts';
import { whileBeating } from './beating.ts';
import { namingBilling } from './billing.ts';
import type { ModelAccess } from './model-access.ts';

/** Adam's fixed settings: those of the protocol's own defaults. */
const ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 } as const;

/** What the service says of one optimizer update; null where it does not. */
export type UpdateFigures = { readonly loss: number | null; readonly gradNorm: number | null };

export type UpdateOrder = {
  readonly sequences: readonly (PolicyWire | CrossEntropyWire)[];
  readonly loss: 'importance_sampling' | 'ppo' | 'cross_entropy';
  readonly learningRate: number;
};

/** The training on the service that `ref` means; its next call carries the sequence number in it. */
export const clientOf = (models: ModelAccess, { modelId, nextSeqId, sessionId }: TrainingRef): Promise<TrainingClient> =>
  models.withClient(async (client) => client.training(modelId, { nextSeqId, sessionId }));

/** Gradients of one loss, then one step of the optimizer. `loss` is the sum over the tokens. */
export async function optimizerUpdate(client: TrainingClient, { sequences, loss, learningRate }: UpdateOrder): Promise<UpdateFigures> {
  const signal = cancellationSignal();
  const { metrics } = await client.forwardBackward(sequences, loss, { signal });
  const optimizer = await client.optimStep({ learningRate, ...ADAM }, { signal });
  return { loss: metrics['loss:sum'] ?? null, gradNorm: gradNormIn(optimizer.metrics) };
}

/** Runs training calls, with heartbeats. Fails for good with `TrainingLost` where the training on the service cannot go on. */
export async function onService<T>(models: ModelAccess, work: () => Promise<T>): Promise<T> {
  try {
    return await whileBeating(work, models.longestWait);
  } catch (error) {
    throw asTrainingFailure(namingBilling(error));
  }
}

/** A failed call is remembered by the service under its number: more attempts than this only hear the same failure again. */
const ATTEMPTS_BEFORE_LOST = 5;

/** An outage (`RetryLater`) is waited out. */
function asTrainingFailure(error: unknown): unknown {
  const isLost = error instanceof TrainingStateUnknown || error instanceof ServiceFailed;
  if (!isLost || activityInfo().attempt < ATTEMPTS_BEFORE_LOST) return error;
  return ApplicationFailure.nonRetryable(
    `the service cannot go on with this training: ${error.message}. What was saved before is kept there.`,
    'TrainingLost',
  );
}

/** Services name it differently; absent is unknown, not zero. */
function gradNormIn(metrics: Readonly<Record<string, number>>): number | null {
  const key = Object.keys(metrics).find((name) => /grad_norm/.test(name));
  return key === undefined ? null : (metrics[key] ?? null);
}
