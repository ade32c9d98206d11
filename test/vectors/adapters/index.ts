import type { FamilyAdapter } from '../judge.ts';
import { authJwt } from './auth-jwt.ts';
import { billing } from './billing.ts';
import { cli } from './cli.ts';
import { config } from './config.ts';
import { cost } from './cost.ts';
import { datums } from './datums.ts';
import { e2b } from './e2b.ts';
import { fwdbwdChunking } from './fwdbwd-chunking.ts';
import { fwdbwdEncode, fwdbwdEncodeZstd } from './fwdbwd-encode.ts';
import { gate } from './gate.ts';
import { jsonCalls } from './json-calls.ts';
import { pollAndRetry } from './poll-and-retry.ts';
import { stores } from './stores.ts';
import { taskSampler } from './task-sampler.ts';
import { fwdbwdResponseDecode, sampleResponseDecode } from './tinker-results.ts';
import { tinkerSession } from './tinker-session.ts';
import { tinkerSessionResults } from './tinker-session-results.ts';
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
  jsonCalls,
  stores,
  taskSampler,
  trials,
  tripwire,
  fwdbwdChunking,
  fwdbwdEncode,
  fwdbwdEncodeZstd,
  fwdbwdResponseDecode,
  sampleResponseDecode,
  tinkerSession,
  tinkerSessionResults,
  authJwt,
  pollAndRetry,
];
