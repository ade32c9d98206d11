/** A request that cannot be served; becomes the HTTP answer `{"detail": message}` with this status. */
export class HttpFailure extends Error {
  readonly status: 400 | 401 | 404 | 409 | 410 | 413 | 415 | 429;

  constructor(status: HttpFailure['status'], detail: string) {
    super(detail);
    this.name = 'HttpFailure';
    this.status = status;
  }
}

/**
 * A call that was accepted but cannot be carried out because of what the caller sent.
 * Becomes a failed future of category `user`: its sequence number is used up, so that later calls do not wait for it.
 */
export class UserError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UserError';
  }
}

/** The state folder is in use or damaged, or the base models are: the service cannot start. */
export class StateError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StateError';
  }
}
