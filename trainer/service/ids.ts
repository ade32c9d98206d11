/**
 * Names of things, as clients compute them too:
 *   model    `<session>:train:<model_seq_id>`       sampling session `<session>:sample:<n>`
 *   request  `<model>:<seq_id>`, `<model>:create`, `<model>:unload`, `<sampling session>:<seq_id>`
 *   path     `tinker://<model>/weights/<name>` or `tinker://<model>/sampler_weights/<name>`
 * Request ids follow from the call, so a repeated call gets the first call's future, also after a restart.
 */
export const modelId = (sessionId: string, modelSeqId: number): string => `${sessionId}:train:${modelSeqId}`;
export const samplerId = (sessionId: string, samplingSeqId: number): string => `${sessionId}:sample:${samplingSeqId}`;

/** Sequence number under which a model's creation is journaled; real calls start at 1. */
export const CREATE_SEQ = 0;

export const trainingRequestId = (model: string, seq: number): string => `${model}:${seq === CREATE_SEQ ? 'create' : seq}`;
export const unloadRequestId = (model: string): string => `${model}:unload`;
export const sampleRequestId = (sampler: string, seq: number): string => `${sampler}:${seq}`;

export type RequestName =
  | { readonly kind: 'training' | 'sample'; readonly owner: string; readonly seq: number }
  | { readonly kind: 'unload'; readonly owner: string };

/** Takes a request id apart; null when it is none of ours. */
export function parseRequestId(text: string): RequestName | null {
  const match = /^(.+:(train|sample):\d+):(\d+|create|unload)$/.exec(text);
  if (match === null) return null;
  const [, owner = '', kind, what = ''] = match;
  if (/^\d/.test(what)) return { kind: kind === 'train' ? 'training' : 'sample', owner, seq: Number(what) };
  if (kind === 'sample') return null;
  return what === 'create' ? { kind: 'training', owner, seq: CREATE_SEQ } : { kind: 'unload', owner };
}

/** What clients can name by a path. */
export const NAMED_KINDS = ['weights', 'sampler_weights'] as const;
/** `ephemeral`: weights behind a sampling session that was asked for without a name; no list shows them and no client's path leads to them. */
export const CHECKPOINT_KINDS = [...NAMED_KINDS, 'ephemeral'] as const;
export type NamedKind = (typeof NAMED_KINDS)[number];
export type CheckpointKind = (typeof CHECKPOINT_KINDS)[number];
export type CheckpointPath<Kind extends CheckpointKind = CheckpointKind> = {
  readonly run: string;
  readonly kind: Kind;
  readonly name: string;
};

export const formatPath = (path: CheckpointPath): string => `tinker://${path.run}/${path.kind}/${path.name}`;

/** Takes a path that a client sent apart; null when it has another shape. */
export function parsePath(text: string): CheckpointPath<NamedKind> | null {
  const path = parseStoredPath(text);
  return path === null || path.kind === 'ephemeral' ? null : { ...path, kind: path.kind };
}

/** Takes any path that the service itself wrote down apart. */
export function parseStoredPath(text: string): CheckpointPath | null {
  const match = /^tinker:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(text);
  const kind = CHECKPOINT_KINDS.find((each) => each === match?.[2]);
  if (match === null || kind === undefined) return null;
  return { run: match[1] ?? '', kind, name: match[3] ?? '' };
}

/** Checkpoint names become file names, so they are plain. */
export const isCheckpointName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(name);
