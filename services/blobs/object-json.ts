import { z } from 'zod';
import type { ObjectKey, ObjectStore } from './object-store.ts';

/** An object that is there, but not what is written under its name: damaged, or put there by something else. */
export class ObjectUnexpected extends Error {
  readonly exitCode = 2;
  override readonly name = 'ObjectUnexpected';

  constructor(key: ObjectKey, problem: string) {
    super(`${key} in the blob store is not what a run writes there: ${problem}. It was damaged or replaced: restore it from a copy`);
  }
}

/** The value that an object holds as JSON, checked; null where there is none. @throws ObjectUnexpected, which names the object */
export async function getObjectJson<T>(objects: ObjectStore, key: ObjectKey, schema: z.ZodType<T>): Promise<T | null> {
  const bytes = await objects.get(key);
  return bytes === null ? null : parseObject(key, bytes, schema);
}

function parseObject<T>(key: ObjectKey, bytes: Uint8Array, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new ObjectUnexpected(key, `no JSON (${(error as Error).message})`);
  }
  const { data, error } = schema.safeParse(value);
  if (error) throw new ObjectUnexpected(key, z.prettifyError(error).replaceAll('\n', ' '));
  return data as T;
}
