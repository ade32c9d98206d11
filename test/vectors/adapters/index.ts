import type { FamilyAdapter } from '../judge.ts';
import { authJwt } from './auth-jwt.ts';
import { billing } from './billing.ts';
import { cli } from './cli.ts';
import { config } from './config.ts';
import { cost } from './cost.ts';
import { datums } from './datums.ts';
import { e2b } from './e2b.ts';
import { gate } from './gate.ts';
import { pollAndRetry } from './poll-and-retry.ts';
import { stores } from './stores.ts';
import { taskSampler } from './task-sampler.ts';
import { trials } from './trials.ts';
import { tripwire } from './tripwire.ts';

/** The families this code can be measured against. */
export const adapters: readonly FamilyAdapter[] = [
  billing,
  cli,
  config,
  cost,
  datums,
  e2b,
  gate,
  stores,
  taskSampler,
  trials,
  tripwire,
  authJwt,
  pollAndRetry,
];
