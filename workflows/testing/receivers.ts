import type * as workflow from '@temporalio/workflow';

/** What a workflow does with one kind of message. */
export type Receiver = { readonly take: (input: unknown) => unknown; readonly check: (input: unknown) => void };

/** By `update pause` or `signal pause`, as they were set last. */
export const receivers = new Map<string, Receiver>();

/** The SDK for code that takes messages outside of a workflow: receivers are kept here, and a wait never goes on by itself. */
export const sdkWithReceivers = (sdk: typeof workflow) => ({
  ...sdk,
  condition: () => new Promise(() => {}),
  setHandler: ({ type, name }: { type: string; name: string }, take: Receiver['take'], options?: { validator: Receiver['check'] }) =>
    receivers.set(`${type} ${name}`, { take, check: options?.validator ?? (() => {}) }),
});
