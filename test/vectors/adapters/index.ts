import type { FamilyAdapter } from '../judge.ts';
import { config } from './config.ts';
import { datums } from './datums.ts';
import { gate } from './gate.ts';
import { taskSampler } from './task-sampler.ts';

/** The families this code can be measured against. */
export const adapters: readonly FamilyAdapter[] = [config, datums, gate, taskSampler];
