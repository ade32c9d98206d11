import type { z } from 'zod';
import { BadRequest } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import { type Failure, isMissingCall } from '../http/classify.ts';
import type { HttpCall } from '../http/http.ts';

/** Whose things a listing shows: the caller's own, or all that the caller may see. */
export type AccessScope = 'owned' | 'accessible';

export type Query = Readonly<Record<string, string | number | undefined>>;

const DIRECT = { phase: 'submit', subject: 'other' } as const;

/** @throws BadRequest when there is no such thing, ServiceFailed when the answer does not fit the protocol */
export function getJson<Schema extends z.ZodType>(caller: Caller, path: string, query: Query, schema: Schema): Promise<z.infer<Schema>> {
  return caller.json({ ...DIRECT, method: 'GET', path: withQuery(path, query) }, schema);
}

export function postJson<Schema extends z.ZodType>(
  caller: Caller,
  path: string,
  body: object,
  schema: Schema,
  headers: Readonly<Record<string, string>> = {},
): Promise<z.infer<Schema>> {
  return caller.json({ ...DIRECT, method: 'POST', path, body: JSON.stringify(body), headers }, schema);
}

/** For answers without content. */
export async function sendOnly(caller: Caller, method: HttpCall['method'], path: string, body?: object): Promise<void> {
  await caller.send({ ...DIRECT, method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}

/** For what may be done once only: after a try without an answer, what is gone was removed by it. @throws BadRequest when it never was there */
export async function sendDelete(caller: Caller, path: string): Promise<void> {
  let mayBeDone = false;
  const onFailure = ({ status }: Failure) => {
    mayBeDone ||= status === null || status >= 500;
  };
  try {
    await caller.send({ ...DIRECT, method: 'DELETE', path, onFailure });
  } catch (error) {
    if (!mayBeDone || !(error instanceof BadRequest) || error.status !== 404) throw error;
  }
}

/** Null from servers that do not have the call; they answer 404, 405 or 501. @throws whatever else `work` throws */
export async function ifSupported<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (isUnsupported(error)) return null;
    throw error;
  }
}

/** Says what a 404, 405 or 501 means for a call that not every service has: `what` it may lack. @throws whatever `work` throws */
export async function ofSome<T>(work: Promise<T>, what: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    throw new BadRequest(`this service has no ${what} (${error.status}: ${error.detail})`, { ...error, cause: error });
  }
}

function isUnsupported(error: unknown): error is BadRequest {
  return error instanceof BadRequest && isMissingCall(error.status);
}

function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)] as [string, string]]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
