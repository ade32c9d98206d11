import type { Exchange } from './scripted-server.ts';

/** Our class for a failure whose last answer is this one: the official client's are named after statuses, ours after what to do. */
export function expectedClass({ path, status, res, req_headers }: Exchange): string {
  if (status === 200 && isUserError(res)) return 'BadRequest';
  if (status === 200) return req_headers['x-tinker-request-type'] === 'ForwardBackward' ? 'TrainingStateUnknown' : 'ServiceFailed';
  if (status === 401 || status === 403) return 'CredentialRefused';
  if (status === 402) return 'BillingPaused';
  if (status === 404 || status === 410) return path.endsWith('/asample') ? 'SessionLost' : 'TrainingStateUnknown';
  if (status === 408 || status === 409 || status === 429 || status >= 500) return 'RetryLater';
  return 'BadRequest';
}

function isUserError(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'category' in body && body.category === 'user';
}
