import type { Client } from '@temporalio/client';

/** Where the server ends an execution, and what one message may have. */
export const SERVER_LIMITS = { events: 51_200, bytes: 50 * 1024 * 1024, payloadBytes: 2 * 1024 * 1024 } as const;

export type OfType = { readonly type: string; executions: number; events: number; bytes: number; mostEvents: number; mostBytes: number };
export type Execution = { readonly workflowId: string; readonly runId: string; readonly type: string };
export type SizedExecution = Execution & { readonly events: number; readonly bytes: number };

/** Every execution of the namespace, open ones too. */
async function executions(client: Client): Promise<SizedExecution[]> {
  const found: SizedExecution[] = [];
  for await (const { workflowId, runId, type, historyLength, historySize } of client.workflow.list())
    found.push({ workflowId, runId, type, events: historyLength, bytes: historySize ?? 0 });
  return found;
}

/** Events and bytes by workflow type, once the server's list has all executions, which it learns a little later. */
export async function sizesByType(client: Client, isWhole: (types: ReadonlyMap<string, OfType>) => boolean) {
  for (;;) {
    const all = await executions(client);
    const types = new Map<string, OfType>();
    for (const { type, events, bytes } of all) {
      const sum = types.get(type) ?? { type, executions: 0, events: 0, bytes: 0, mostEvents: 0, mostBytes: 0 };
      sum.executions++;
      sum.events += events;
      sum.bytes += bytes;
      sum.mostEvents = Math.max(sum.mostEvents, events);
      sum.mostBytes = Math.max(sum.mostBytes, bytes);
      types.set(type, sum);
    }
    if (isWhole(types)) return { types: [...types.values()], all };
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

export type Payload = { readonly bytes: number; readonly of: string };

/** The largest value in the history of an execution, and how often each kind of event is in it. */
export async function lookInto(client: Client, { workflowId, runId }: Execution) {
  const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  const kinds = new Map<string, number>();
  let largest: Payload = { bytes: 0, of: '' };
  for (const event of events ?? []) {
    const [kind, attributes] = Object.entries(event).find(([key, value]) => key.endsWith('Attributes') && value) ?? ['unknown', null];
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const bytes = Math.max(0, ...payloadsIn(attributes));
    if (bytes > largest.bytes) largest = { bytes, of: `${workflowId}: ${kind.replace('EventAttributes', '')}` };
  }
  return { largest, kinds };
}

function payloadsIn(value: unknown): number[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  if ('metadata' in value && 'data' in value && value.data instanceof Uint8Array) return [value.data.byteLength];
  return Object.values(value).flatMap(payloadsIn);
}
