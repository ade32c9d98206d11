import type { SamplerPath, StatePath } from '../../core/ids.ts';
import { BadRequest } from './errors.ts';

/** The three things that a model saves, by the word in their paths. */
export type SavedKind = 'weights' | 'sampler_weights' | 'external_weights';

export type PathParts = { readonly run: string; readonly kind: SavedKind; readonly name: string };

const TWO_PARTS = /^tinker:\/\/([^/?#\s]+)\/([^/?#\s]+)$/;

const WHAT: Readonly<Record<SavedKind, string>> = {
  weights: 'training state',
  sampler_weights: 'weights for sampling',
  external_weights: 'weights for download',
};

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
  if (pathParts(text)?.kind !== 'weights') throw wrongPath(text, 'weights', 'saveState');
  return text as StatePath;
}

/**
 * Also takes the two parts `tinker://<run>/<name>`, which some servers answer a save for sampling with.
 * @throws BadRequest when it is not `tinker://<run>/sampler_weights/<name>`; it says what else it is
 */
export function samplerPath(text: string): SamplerPath {
  if (savedParts(text)?.kind !== 'sampler_weights') throw wrongPath(text, 'sampler_weights', 'saveForSampler');
  return text as SamplerPath;
}

/**
 * Brands hold at compile time only: a path that plainly is of another kind never reaches the service. Servers' own forms may.
 * @throws BadRequest
 */
export function refuseOtherKind(path: string, wanted: 'weights' | 'sampler_weights'): void {
  const kind = savedParts(path)?.kind;
  const isOther = kind !== undefined && kind !== wanted;
  if (isOther || !path.startsWith('tinker://')) throw wrongPath(path, wanted, wanted === 'weights' ? 'saveState' : 'saveForSampler');
}

function wrongPath(text: string, wanted: SavedKind, saver: string): BadRequest {
  const kind = savedParts(text)?.kind;
  const is = kind === undefined ? 'no path of saved weights' : WHAT[kind];
  const message = `"${text}" is ${is}; needed is ${WHAT[wanted]}: tinker://<run>/${wanted}/<name>, as ${saver} answers it`;
  return new BadRequest(message, { call: wanted === 'weights' ? 'statePath' : 'samplerPath' });
}
