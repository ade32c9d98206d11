import { PHASES } from '../../core/run/phase.ts';
import type { Colors } from '../console.ts';
import { duration, percent } from './format.ts';
import { table } from './table.ts';

/** A part of the wall time; parts do not overlap. */
export type WallPart = { readonly part: string; readonly ms: number };

/** A run's wall time by phase in order, then what its phases do not cover. */
export function wallParts(wallMs: Readonly<Record<string, number>>, allMs: number): WallPart[] {
  const known = PHASES.filter((phase) => wallMs[phase] !== undefined);
  const others = Object.keys(wallMs).filter((name) => !known.some((phase) => phase === name));
  const parts = [...known, ...others].map((part) => ({ part, ms: wallMs[part] ?? 0 }));
  const restMs = allMs - parts.reduce((sum, { ms }) => sum + ms, 0);
  return restMs > 0 ? [...parts, { part: 'between phases', ms: restMs }] : parts;
}

/** Parts under a twentieth of a second say nothing and are left out; the sum has them all. */
const SHOWN_MS = 50;

/** Where the time went, with each part's share of the sum. */
export function wallTable(parts: readonly WallPart[], colors: Colors): string {
  const allMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  const rows = parts.filter(({ ms }) => ms >= SHOWN_MS).map(({ part, ms }) => [part, duration(ms), percent(ms / Math.max(allMs, 1), 0)]);
  return table(colors, ['where the time went', 'time', 'share'], [...rows, [colors.bold('all'), colors.bold(duration(allMs)), '']]);
}
