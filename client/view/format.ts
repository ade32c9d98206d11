/** How numbers look in every view. A missing number is a dash, never a zero. */
export const DASH = '–';

export const percent = (rate: number | null, digits = 1): string => (rate === null ? DASH : `${(rate * 100).toFixed(digits)} %`);

export const number = (value: number | null, digits = 3): string => (value === null ? DASH : value.toFixed(digits));

export const signed = (value: number, digits = 3): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`;

/** Small sums keep the digits that make them visible; what is smaller still does not look like nothing. */
export function usd(value: number): string {
  if (value > 0 && value < 0.00005) return '<$0.0001';
  return `$${value.toFixed(Math.abs(value) < 1 ? 4 : 2)}`;
}

export const count = (value: number): string => value.toLocaleString('en-US');

export function duration(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** `███░░░`, `width` characters. */
export function bar(done: number, all: number, width: number): string {
  const filled = all === 0 ? 0 : Math.round((Math.min(done, all) / all) * width);
  return '█'.repeat(filled) + '░'.repeat(width - filled);
}

/** A p-value as reported: no more digits than it has, and never exactly zero. */
export const pValue = (p: number): string => (p < 0.0001 ? 'p < 0.0001' : `p = ${p.toFixed(4)}`);

/** `1.2 MB`, in powers of a thousand. */
export function bytes(value: number): string {
  const power = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  return `${power === 0 ? value : (value / 1000 ** power).toFixed(1)} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`;
}
