/** A client of the Tinker protocol. See README.md. */

export { type CallFate, callFate, ofUnsentCall } from './call-fate.ts';
export { type ClientOptions, type ConnectOptions, type FinishReason, TinkerClient } from './client.ts';
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
export type { Clock } from './http/clock.ts';
export { type PathParts, pathParts, type SamplerPath, type SavedKind, type StatePath, samplerPath, statePath } from './paths.ts';
export type { AuditEntry } from './rest/audit.ts';
export type { Billing, StorageEntry, StorageUsage, Usage, UsageEvent, UsageInfo, UsageWindow } from './rest/billing.ts';
export type { Capabilities, SupportedModel } from './rest/capabilities.ts';
export type { Checkpoint, Checkpoints, ExternalWeightsUrls } from './rest/checkpoints.ts';
export type { Page, PageOptions } from './rest/paging.ts';
export type { AccessScope } from './rest/request.ts';
export type { Rest, SamplerInfo } from './rest/rest.ts';
export { RestClient } from './rest/rest-client.ts';
export type { FoundSessions, SearchCursor, SessionInfo, SessionSearch, Sessions } from './rest/sessions.ts';
export type { RunFilter, TrainingRun, TrainingRuns } from './rest/training-runs.ts';
export type { CopyOptions, Weights, WeightsInfo } from './rest/weights.ts';
export type { Prompt, Stop, TargetTokens } from './sampling/sample-body.ts';
export type { SampleAll, Sequence } from './sampling/sample-result.ts';
export type {
  PromptScores,
  SampleAllRequest,
  SampleRequest,
  SampleResult,
  Sampler,
  SamplerSource,
  ScoreOptions,
} from './sampling/sampler.ts';
export type { SessionOptions } from './session/session-options.ts';
export { type ConnectionOptions, requireSettings, type WaitReport } from './settings.ts';
export type { CreatedModel, FromStateOptions, ModelInfo, ModelOptions } from './training/models.ts';
export type { AdamParams, DimuonParams, OptimizerParams, OptimizerType } from './training/optimizer.ts';
export { type PendingCall, parseSavedCall, type SavedCall } from './training/pending-call.ts';
export type { EphemeralOptions, ExternalOptions, LoadOptions, SaveOptions } from './training/save-options.ts';
export type { Batch, CallOptions, LossOptions, TrainingClient } from './training/training.ts';
export type { TrainingBodies } from './training/training-body.ts';
export { type LossRows, trainingDatum } from './training/training-datum.ts';
export type { CallKind, CallResults, OptimStepResult, SavedExternal } from './training/training-results.ts';
export {
  type Chunk,
  type ForwardBackwardOutput,
  type LossFnConfig,
  type ProvenanceSpan,
  type TensorInput,
  type TensorValue,
  TOPK_MASK,
  type TopkTable,
  type TrainingDatum,
  topkRow,
} from './wire/index.ts';
