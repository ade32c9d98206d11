import type { FaultOf } from './fault-schemas.ts';

/** Answers that come from the plan instead of the service. */

export function statusAnswer(fault: FaultOf<'status'>): Response {
  const { status, detail, retry_after_s, retry_after_ms, should_retry, queue_state, queue_state_reason, invalid_token } = fault;
  const body = { detail: detail ?? `status ${status} by the fault plan`, queue_state, queue_state_reason };
  const headers = new Headers();
  if (retry_after_s !== undefined) headers.set('retry-after', String(retry_after_s));
  if (retry_after_ms !== undefined) headers.set('retry-after-ms', String(retry_after_ms));
  if (should_retry !== undefined) headers.set('x-should-retry', String(should_retry));
  if (invalid_token === true) headers.set('www-authenticate', 'Bearer error="invalid_token"');
  return Response.json(body, { status, headers });
}

export const emptyBadRequest = (): Response => new Response(null, { status: 400, headers: { 'content-length': '0' } });

export const refusal = (status: number, detail: string): Response => Response.json({ detail }, { status });

export function tryAgain(requestId: string | null, { queue_state, reason }: FaultOf<'pending'>): Response {
  return Response.json({ type: 'try_again', request_id: requestId, queue_state, queue_state_reason: reason });
}
