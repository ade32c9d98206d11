import type { Check } from './results.ts';

export const passed = (name: string, detail: string, numbers: Check['numbers'] = {}): Check => ({ name, ok: true, detail, numbers });
export const failed = (name: string, detail: string, numbers: Check['numbers'] = {}): Check => ({ name, ok: false, detail, numbers });
