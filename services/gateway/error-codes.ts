/** Every `code` that an error of the gateway can have, with its HTTP status. What each means to an agent: docs/gateway.md. */
export const ERROR_STATUS = {
  invalid_json: 400,
  invalid_request: 400,
  context_length_exceeded: 400,
  call_limit_reached: 400,
  token_limit_reached: 400,
  usd_limit_reached: 400,
  history_limit_reached: 400,
  client_gone: 400,
  invalid_api_key: 401,
  unknown_trial: 404,
  not_found: 404,
  trial_ended: 410,
  trial_suspended: 410,
  time_limit_reached: 410,
  request_too_large: 413,
  model_busy: 429,
  internal_error: 500,
  model_failed: 502,
  model_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;
