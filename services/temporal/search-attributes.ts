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

/**
 * Makes sure that the namespace knows the attributes: a workflow that upserts an unknown one would retry its task for ever.
 * Fails with the command that an operator with more rights can run.
 */
export async function registerSearchAttributes(
  connection: Connection | NativeConnection,
  namespace: string,
  keys: readonly Key[],
): Promise<void> {
  const known = await connection.operatorService.listSearchAttributes({ namespace }).catch(() => ({ customAttributes: {} }));
  const missing = keys.filter(({ name }) => !(name in (known.customAttributes ?? {})));
  if (missing.length === 0) return;
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map(({ name, type }) => [name, INDEXED_VALUE_TYPE[type]])),
    });
  } catch (error) {
    if (/already exists/i.test((error as Error).message)) return;
    const flags = missing.map(({ name, type }) => `--name ${name} --type ${cliType(type)}`).join(' ');
    throw new Error(
      `namespace ${namespace} lacks search attributes and they could not be added (${(error as Error).message}). Run: temporal operator search-attribute create --namespace ${namespace} ${flags}`,
    );
  }
}

const cliType = (type: SearchAttributeType) => type.toLowerCase().replace(/(^|_)(\w)/g, (_, __, letter: string) => letter.toUpperCase());
