import type { Fault, TrialRetry } from '../../core/run/trial.ts';

/** What one exception says of a trial. */
export type ExceptionRow = {
  readonly fault: Fault;
  /** True when a reward that stands beside it is the work's own, and counts. */
  readonly rewardCounts: boolean;
  /** Whether a trial that it left without a reward is worth another try. */
  readonly retry: TrialRetry;
  /** How the agent stopped; null where it had ended before, so that its own word counts. */
  readonly stop: string | null;
};

const row = (fault: Fault, rewardCounts: boolean, retry: TrialRetry, stop: string | null = 'error'): ExceptionRow => ({
  fault,
  rewardCounts,
  retry,
  stop,
});

/**
 * Every exception that harbor 0.25 names in its own policy, those of our plug-in, and the names under which Stillroom itself gives a trial up,
 * with what each means. docs/outcomes.md is this table in words.
 */
export const EXCEPTIONS: Readonly<Record<string, ExceptionRow>> = {
  // The agent used up what it had. What it left is graded as it stands.
  AgentTimeoutError: row('budget', true, 'again', 'budget'),
  ContextLengthExceededError: row('budget', true, 'again', 'provider_error'),
  ContextWindowExceededError: row('budget', true, 'again', 'provider_error'),
  OutputLengthExceededError: row('budget', true, 'again', 'provider_error'),
  OutputTokenExceededError: row('budget', true, 'again', 'provider_error'),
  // The agent, or the model in it, gave up.
  NonZeroAgentExitCodeError: row('agent', true, 'again'),
  AgentSafetyRefusalError: row('agent', true, 'never', 'refused'),
  ContentPolicyViolationError: row('agent', true, 'never', 'refused'),
  AgentCannotPlay: row('agent', false, 'never'),
  // The grader failed at finished work: the same grader would fail again.
  VerifierTimeoutError: row('grader', true, 'never', null),
  RewardFileNotFoundError: row('grader', true, 'never', null),
  RewardFileEmptyError: row('grader', true, 'never', null),
  VerifierOutputParseError: row('grader', true, 'never', null),
  // The sandbox was not there for the agent, or broke under it.
  EnvironmentStartTimeoutError: row('sandbox', false, 'again'),
  SandboxBuildFailedError: row('sandbox', false, 'once'),
  AgentSetupTimeoutError: row('sandbox', false, 'again'),
  HealthcheckError: row('sandbox', false, 'again'),
  SandboxLikelyOutOfMemoryError: row('sandbox', false, 'again'),
  MemoryLimitExceededError: row('sandbox', false, 'again'),
  SSHAccessError: row('sandbox', false, 'again'),
  GKEExecStreamClosedError: row('sandbox', false, 'again'),
  GKEPodNotFoundError: row('sandbox', false, 'again'),
  RuntimeRequestError: row('sandbox', false, 'again'),
  RateLimitException: row('sandbox', false, 'again'),
  // It broke on the way to the grader or back: the agent had ended.
  AddTestsDirError: row('sandbox', false, 'again', null),
  DownloadVerifierDirError: row('sandbox', false, 'again', null),
  // The model could not be asked, this time.
  ApiError: row('model', false, 'again'),
  ApiRateLimitError: row('model', false, 'again'),
  ApiInternalServerError: row('model', false, 'again'),
  ApiOverloadedError: row('model', false, 'again'),
  ApiConnectionClosedError: row('model', false, 'again'),
  ApiResponseStalledError: row('model', false, 'again'),
  ApiConnectionError: row('model', false, 'again'),
  UnknownApiError: row('model', false, 'again'),
  NetworkConnectionError: row('model', false, 'again'),
  RateLimitError: row('model', false, 'again'),
  InternalServerError: row('model', false, 'again'),
  ServiceUnavailableError: row('model', false, 'again'),
  APIConnectionError: row('model', false, 'again'),
  APIError: row('model', false, 'again'),
  Timeout: row('model', false, 'again'),
  ModelCallError: row('model', false, 'again'),
  ModelUnavailable: row('model', false, 'again'),
  ApiUsageLimitError: row('model', false, 'once'),
  // The model will not be asked like this, however often: a key, a name or a parameter is wrong.
  AgentAuthenticationError: row('model', false, 'never'),
  AuthenticationError: row('model', false, 'never'),
  PermissionDeniedError: row('model', false, 'never'),
  MissingModelCredentialError: row('model', false, 'never'),
  ModelNotFoundError: row('model', false, 'never'),
  NotFoundError: row('model', false, 'never'),
  ApiProviderResourceNotFoundError: row('model', false, 'never'),
  UnsupportedModelParametersError: row('model', false, 'never'),
  UnsupportedParamsError: row('model', false, 'never'),
  BadRequestError: row('model', false, 'never'),
  UnprocessableEntityError: row('model', false, 'never'),
  APIResponseValidationError: row('model', false, 'never'),
  BudgetExceededError: row('model', false, 'never'),
  // Stillroom's own doing, or harbor as it is installed here.
  CancelledError: row('us', false, 'again'),
  TrialCrashed: row('us', false, 'again'),
  RunnerDied: row('us', false, 'again'),
  ForeignResult: row('us', false, 'never'),
  ServiceOperationsUnsupportedError: row('us', false, 'never'),
  VercelScopeError: row('us', false, 'never'),
  DspyImportError: row('us', false, 'never'),
  MissingExtraError: row('us', false, 'never'),
  RegradeError: row('us', false, 'never'),
};

/** How far a trial had come. */
export type Reached = 'sandbox' | 'agent' | 'grader';

/** An exception that is not listed (a sandbox's RuntimeError, a ValueError of an agent) is whose turn it was. A reward beside it counts. */
export const UNLISTED: Readonly<Record<Reached, ExceptionRow>> = {
  sandbox: row('sandbox', true, 'again'),
  agent: row('agent', true, 'again'),
  grader: row('grader', true, 'again'),
};

/** What the exception of this type means for a trial that had come so far. */
export function exceptionRow(exceptionType: string, reached: Reached): ExceptionRow {
  return (Object.hasOwn(EXCEPTIONS, exceptionType) ? EXCEPTIONS[exceptionType] : undefined) ?? UNLISTED[reached];
}

/** A trial without an exception. `silent`: its verifier never answered, a riddle worth one more try; `unusable`: it answered, without the reward that counts. */
export const NO_EXCEPTION = {
  silent: row('grader', true, 'once', null),
  unusable: row('grader', true, 'never', null),
} as const satisfies Record<string, ExceptionRow>;
