/** A client of the Tinker protocol. See README.md. */
export type { Checkpoint, Checkpoints } from './checkpoints.ts';
export { type Capabilities, type ConnectOptions, type FinishReason, type SupportedModel, TinkerClient } from './client.ts';
export {
  BadRequest,
  BillingPaused,
  CredentialRefused,
  type QueueState,
  ResubmitSample,
  RetryLater,
  ServiceFailed,
  SessionLost,
  SettingMissing,
  TinkerError,
  TrainingStateUnknown,
} from './errors.ts';
export type { CreatedModel, ModelInfo, ModelOptions } from './models.ts';
export type { PromptScores, SampleRequest, SampleResult, Sampler, SamplerSource } from './sampler.ts';
export type { ConnectionOptions, WaitReport } from './settings.ts';
export type { AdamParams, Batch, CallOptions, LossOptions, SaveOptions, TrainingClient } from './training.ts';
export { type LossRows, trainingDatum } from './training-datum.ts';
export {
  type Chunk,
  type ForwardBackwardOutput,
  type LossFnConfig,
  type TensorInput,
  type TensorValue,
  TOPK_MASK,
  type TopkTable,
  type TrainingDatum,
  topkRow,
} from './wire/index.ts';
