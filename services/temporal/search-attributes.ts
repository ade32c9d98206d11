import type { Connection } from '@temporalio/client';
import type { SearchAttributeType } from '@temporalio/common';
import type { NativeConnection } from '@temporalio/worker';

/** The protocol's number of each type (temporal.api.enums.v1.IndexedValueType). */
const INDEXED_VALUE_TYPE: Record<SearchAttributeType, number> = {
  TEXT: 1,
  KEYWORD: 2,
  INT: 3,
  DOUBLE: 4,
  BOOL: 5,
  DATETIME: 6,
  KEYWORD_LIST: 7,
};

type Key = { readonly name: string; readonly type: SearchAttributeType };

/** The namespace lacks what runs need, and a person with more rights must add it. */
export class SearchAttributesMissing extends Error {
  readonly exitCode = 2;
  override readonly name = 'SearchAttributesMissing';
}

/**
 * Makes sure that the namespace knows the attributes: a workflow that upserts an unknown one, or one of another type, would retry its
 * task for ever. @throws SearchAttributesMissing with the command that an operator can run.
 */
export async function registerSearchAttributes(
  connection: Connection | NativeConnection,
  namespace: string,
  keys: readonly Key[],
): Promise<void> {
  const known = await knownTypes(connection, namespace);
  const other = keys.filter(({ name, type }) => known.has(name) && known.get(name) !== INDEXED_VALUE_TYPE[type]);
  if (other.length > 0) throw new SearchAttributesMissing(ofAnotherType(namespace, other));
  const missing = keys.filter(({ name }) => !known.has(name));
  if (missing.length === 0) return;
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map(({ name, type }) => [name, INDEXED_VALUE_TYPE[type]])),
    });
  } catch (error) {
    if (/already exists/i.test((error as Error).message)) return;
    throw new SearchAttributesMissing(notAdded(namespace, missing, (error as Error).message));
  }
}

/** The attributes of a namespace that says what they are; none where we may not ask, so that the answer to adding them decides. */
async function knownTypes(connection: Connection | NativeConnection, namespace: string): Promise<ReadonlyMap<string, unknown>> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace }).catch(() => ({ customAttributes: {} }));
  return new Map(Object.entries(customAttributes ?? {}));
}

function notAdded(namespace: string, missing: readonly Key[], why: string): string {
  const flags = missing.map(({ name, type }) => `--name ${name} --type ${cliType(type)}`).join(' ');
  return (
    `namespace ${namespace} lacks search attributes and they could not be added (${why}). Run, as somebody who may: ` +
    `temporal operator search-attribute create --namespace ${namespace} ${flags}`
  );
}

const ofAnotherType = (namespace: string, keys: readonly Key[]) =>
  `namespace ${namespace} has search attributes of ours with another type: ${keys.map(({ name, type }) => `${name} must be ${cliType(type)}`).join(', ')}. ` +
  `Run: temporal operator search-attribute remove --namespace ${namespace} ${keys.map(({ name }) => `--name ${name}`).join(' ')} --yes`;

const cliType = (type: SearchAttributeType) => type.toLowerCase().replace(/(^|_)(\w)/g, (_, __, letter: string) => letter.toUpperCase());
