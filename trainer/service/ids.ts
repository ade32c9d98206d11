/**
 * Names of things, as clients compute them too:
 *   model    `<session>:train:<model_seq_id>`       sampling session `<session>:sample:<n>`
 *   request  `<model>:<seq_id>`, `<model>:create`, `<sampling session>:<seq_id>`
 *   path     `tinker://<model>/weights/<name>` or `tinker://<model>/sampler_weights/<name>`
 * Request ids follow from the call, so a repeated call gets the first call's future, also after a restart.
 */
export const modelId = (sessionId: string, modelSeqId: number): string => `${sessionId}:train:${modelSeqId}`;
export const samplerId = (sessionId: string, samplingSeqId: number): string => `${sessionId}:sample:${samplingSeqId}`;

/** Sequence number under which a model's creation is journaled; real calls start at 1. */
export const CREATE_SEQ = 0;

export const trainingRequestId = (model: string, seq: number): string => `${model}:${seq === CREATE_SEQ ? 'create' : seq}`;
export const sampleRequestId = (sampler: string, seq: number): string => `${sampler}:${seq}`;

export type RequestName = { readonly kind: 'training' | 'sample'; readonly owner: string; readonly seq: number };

/** Takes a request id apart; null when it is none of ours. */
export function parseRequestId(text: string): RequestName | null {
  const match = /^(.+:(train|sample):\d+):(\d+|create)$/.exec(text);
  if (match === null) return null;
  const [, owner = '', kind, seq = ''] = match;
  return kind === 'train'
    ? { kind: 'training', owner, seq: seq === 'create' ? CREATE_SEQ : Number(seq) }
    : seq === 'create'
      ? null
      : { kind: 'sample', owner, seq: Number(seq) };
}

export type CheckpointKind = 'weights' | 'sampler_weights';
export type CheckpointPath = { readonly run: string; readonly kind: CheckpointKind; readonly name: string };

export const formatPath = (path: CheckpointPath): string => `tinker://${path.run}/${path.kind}/${path.name}`;

/** Takes a tinker path apart; null when it has another shape. */
export function parsePath(text: string): CheckpointPath | null {
  const match = /^tinker:\/\/([^/]+)\/(weights|sampler_weights)\/([^/]+)$/.exec(text);
  if (match === null) return null;
  const [, run = '', kind, name = ''] = match;
  return { run, kind: kind === 'weights' ? 'weights' : 'sampler_weights', name };
}

/** Checkpoint names become file names, so they are plain. */
export const isCheckpointName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(name);
