import { BadRequest } from './errors.ts';

/** Weights that can be sampled from: `tinker://<run>/sampler_weights/<name>`. Text that only the compiler tells apart: see `samplerPath`. */
export type SamplerPath = string & { readonly __brand: 'SamplerPath' };

/** Training state that can be restored: `tinker://<run>/weights/<name>`. Text that only the compiler tells apart: see `statePath`. */
export type StatePath = string & { readonly __brand: 'StatePath' };

/** The three things that a model saves, by the word in their paths. */
export type SavedKind = 'weights' | 'sampler_weights' | 'external_weights';

export type PathParts = { readonly run: string; readonly kind: SavedKind; readonly name: string };

const TWO_PARTS = /^tinker:\/\/([^/?#\s]+)\/([^/?#\s]+)$/;

const WHAT: Readonly<Record<SavedKind, string>> = {
  weights: 'training state',
  sampler_weights: 'weights for sampling',
  external_weights: 'weights for download',
};

/** The calls that answer the paths which other calls take. */
const SAVERS = { weights: 'saveState', sampler_weights: 'saveForSampler' } as const;

/** `tinker://<run>/<kind>/<name>` in its parts; null when it is not of that form. */
export function pathParts(text: string): PathParts | null {
  const [, run, kind, name] = /^tinker:\/\/([^/?#\s]+)\/(weights|sampler_weights|external_weights)\/([^/?#\s]+)$/.exec(text) ?? [];
  return run === undefined || name === undefined ? null : { run, kind: kind as SavedKind, name };
}

/** The same; the two parts `tinker://<run>/<name>`, which some servers answer a save for sampling with, are of that kind. */
export function savedParts(text: string): PathParts | null {
  const [, run, name] = TWO_PARTS.exec(text) ?? [];
  return run === undefined || name === undefined ? pathParts(text) : { run, kind: 'sampler_weights', name };
}

/** The run of a path of any form; null when it names none. */
export function runOfPath(text: string): string | null {
  return /^tinker:\/\/([^/?#\s]+)\/[^?#\s]/.exec(text)?.[1] ?? null;
}

/** @throws BadRequest when it is not `tinker://<run>/weights/<name>`; it says what else it is */
export function statePath(text: string): StatePath {
  if (pathParts(text)?.kind !== 'weights') throw wrongPath(text, 'weights', 'statePath');
  return text as StatePath;
}

/**
 * Also takes the two parts `tinker://<run>/<name>`, which some servers answer a save for sampling with.
 * @throws BadRequest when it is not `tinker://<run>/sampler_weights/<name>`; it says what else it is
 */
export function samplerPath(text: string): SamplerPath {
  if (savedParts(text)?.kind !== 'sampler_weights') throw wrongPath(text, 'sampler_weights', 'samplerPath');
  return text as SamplerPath;
}

/**
 * Brands hold at compile time only: a path that plainly is of another kind never reaches the service. Servers' own forms may.
 * @throws BadRequest of `call`, the one that was given the path
 */
export function refuseOtherKind(path: string, wanted: keyof typeof SAVERS, call: string): void {
  const kind = savedParts(path)?.kind;
  const isOther = kind !== undefined && kind !== wanted;
  if (isOther || !path.startsWith('tinker://')) throw wrongPath(path, wanted, call);
}

function wrongPath(text: string, wanted: keyof typeof SAVERS, call: string): BadRequest {
  const kind = savedParts(text)?.kind;
  const is = kind === undefined ? 'no path of saved weights' : WHAT[kind];
  const message = `"${text}" is ${is}; needed is ${WHAT[wanted]}: tinker://<run>/${wanted}/<name>, as ${SAVERS[wanted]} answers it`;
  return new BadRequest(message, { call });
}
