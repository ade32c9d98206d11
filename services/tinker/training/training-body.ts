import { BadRequest, RetryLater } from '../errors.ts';
import type { Call, Caller } from '../http/caller.ts';
import { compressBody, encodeForwardBackwardRequest, type ForwardBackwardRequest, jsonForwardBackwardBody } from '../wire/index.ts';

/** `protobuf`: since SDK 0.25 all services; `json`: servers of before. */
export type TrainingBodies = 'protobuf' | 'json';

export type BodyPolicy = {
  /** Default `protobuf`. */
  readonly bodies?: TrainingBodies;
  /** Protobuf bodies are sent as zstd; only where the service asks for it. Default false. */
  readonly compress?: boolean;
};

/** How a request is sent: before protobuf, forward was a call of its own. @throws BadRequest for what such a body cannot carry */
export async function trainingBody(policy: BodyPolicy, request: ForwardBackwardRequest): Promise<Pick<Call, 'path' | 'body' | 'headers'>> {
  if (policy.bodies === 'json') {
    return { path: request.forwardOnly ? 'forward' : 'forward_backward', body: ofCaller(() => jsonForwardBackwardBody(request)) };
  }
  const body = ofCaller(() => encodeForwardBackwardRequest(request));
  if (!policy.compress) return { path: 'forward_backward', body };
  return { path: 'forward_backward', body: await compressBody(body), headers: { 'content-encoding': 'zstd' } };
}

/** @throws BadRequest for what the wire cannot carry of the caller's numbers */
export function ofCaller<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new BadRequest(cause.message, { call: 'forward_backward', cause });
  }
}

/** What servers that do not read protobuf answer to it; the 500 is hatchery's. */
const MAY_WANT_JSON: readonly (number | null)[] = [415, 422, 500];

/** Sends a body. When a server refuses the first protobuf body that it gets from this client, the error says what it may want instead. */
export async function whileItMayWantJson<T>(caller: Caller, policy: BodyPolicy, send: () => Promise<T>): Promise<T> {
  if (policy.bodies === 'json' || caller.takesProtobuf) return send();
  try {
    const result = await send();
    caller.takesProtobuf = true;
    return result;
  } catch (error) {
    const isRefusal = (error instanceof BadRequest || error instanceof RetryLater) && MAY_WANT_JSON.includes(error.status);
    if (!isRefusal) throw error;
    const said = error.message.replace(`${error.call}: `, '');
    const hint = "a server of before protobuf bodies is reached with the option trainingBodies: 'json'";
    const context = { ...error, cause: error };
    throw error instanceof BadRequest ? new BadRequest(`${said}; ${hint}`, context) : new RetryLater(`${said}; ${hint}`, context);
  }
}
