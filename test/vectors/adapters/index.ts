import type { FamilyAdapter } from '../judge.ts';
import { datums } from './datums.ts';

/** The families this code can be measured against. */
export const adapters: readonly FamilyAdapter[] = [datums];
