export type Tolerance = { readonly absolute: number; readonly relative: number };
/** 64-bit arithmetic whose order of summation may differ. */
export const DOUBLE: Tolerance = { absolute: 1e-9, relative: 1e-9 };
export const EXACT: Tolerance = { absolute: 0, relative: 0 };
/** Values that went through 32-bit floats. */
export const SINGLE: Tolerance = { absolute: 1e-9, relative: 1e-6 };

/** Where `actual` departs from `expected`, or null. Key order never matters; keys of `actual` that `expected` lacks are a difference. */
export function difference(expected: unknown, actual: unknown, tolerance: Tolerance = DOUBLE, path = ''): string | null {
  if (typeof expected === 'number' && typeof actual === 'number') {
    const near = Math.abs(expected - actual) <= Math.max(tolerance.absolute, tolerance.relative * Math.abs(expected));
    return near || Object.is(expected, actual) ? null : mismatch(expected, actual, path);
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) return mismatch(`a list of ${expected.length}`, `a list of ${actual.length}`, path);
    return first(expected.map((_, i) => () => difference(expected[i], actual[i], tolerance, `${path}[${i}]`)));
  }
  if (isRecord(expected) && isRecord(actual)) {
    const keys = [...new Set([...Object.keys(expected), ...Object.keys(actual)])];
    return first(keys.map((key) => () => difference(expected[key], actual[key], tolerance, path === '' ? key : `${path}.${key}`)));
  }
  return expected === actual ? null : mismatch(expected, actual, path);
}

function first(checks: readonly (() => string | null)[]): string | null {
  for (const check of checks) {
    const found = check();
    if (found !== null) return found;
  }
  return null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mismatch(expected: unknown, actual: unknown, path: string): string {
  return `${path || 'result'}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`;
}
