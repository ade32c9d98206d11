import type { Difference } from './peers.ts';

/** What our client does otherwise than the official one, or the servers otherwise than they did, each with its reason. */
type Differences = Readonly<Record<string, Difference>>;

export const SKYRL: Differences = {};

export const SKYRL_TX: Differences = {};

export const HATCHERY: Differences = {};
