import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TrainingBodies } from '../../services/tinker/index.ts';
import { HATCHERY, SKYRL, SKYRL_TX } from './differences.ts';

/** A way to start a server. `folder`: its own, empty; `port` of 127.0.0.1. */
export type Launch = (place: { readonly python: string; readonly port: number; readonly folder: string }) => {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

/** What is known to differ between our client's results and the recorded ones of the official client at the same server. */
export type Difference = {
  readonly reason: string;
  /** `ours answered`, `ours refused`: the recording has the opposite. `values`: both answered, with other values. */
  readonly kind: 'ours answered' | 'ours refused' | 'values';
  /** Makes ours comparable; the rest must then agree. */
  readonly view?: (ours: unknown) => unknown;
  /** The recorded step with which ours must agree instead. */
  readonly like?: string;
  /** The step of our own with which ours must agree instead. */
  readonly likeOwn?: string;
};

/** An open server of the protocol. */
export type Peer = {
  readonly name: string;
  readonly title: string;
  /** Its environment, in `requirements/`. */
  readonly requirements: string;
  readonly trainingBodies: TrainingBodies;
  /** How long it may give no sign of life. */
  readonly patienceSeconds: number;
  /** What the official client got from it, in `test/fixtures/tinker/`. */
  readonly recording: string;
  readonly launch: Launch;
  /** It ends an answer at the model's own end only, whatever other stop tokens are asked for. */
  readonly ignoresStopTokens?: true;
  /** By step. A difference that does not show is a failure too: then this table is out of date. */
  readonly differences: Readonly<Record<string, Difference>>;
};

export const MODEL = 'tiny-qwen3';
export const API_KEY = 'tml-dev';

const pythonFolder = join(import.meta.dirname, 'python');
const BACKEND_CONFIG = JSON.stringify({ max_lora_adapters: 32, max_lora_rank: 8 });

/** JAX servers say nothing while they compile, on a busy machine for minutes. */
const COMPILING_SECONDS = 600;

export const PEERS: readonly Peer[] = [
  {
    name: 'skyrl',
    title: 'skyrl 0.4.0 (JAX)',
    requirements: 'skyrl.txt',
    trainingBodies: 'protobuf',
    patienceSeconds: COMPILING_SECONDS,
    recording: 'results.skyrl-0.4.0.sdk-0.38.0-shimmed.json',
    // It looks for `uv run` in its parent's command line, so it must be the stand-in's child.
    launch: (place) => jaxServer(place, [join(pythonFolder, 'uv.py'), 'run', '--extra', 'tinker', '-m', 'skyrl.tinker.api']),
    differences: SKYRL,
  },
  {
    name: 'skyrl-tx',
    title: 'skyrl-tx 0.3.0 (JAX)',
    requirements: 'skyrl-tx.txt',
    trainingBodies: 'json',
    patienceSeconds: COMPILING_SECONDS,
    recording: 'results.skyrl-tx-0.3.0.sdk-0.9.0.json',
    launch: (place) => jaxServer(place, ['-m', 'tx.tinker.api']),
    differences: SKYRL_TX,
  },
  {
    name: 'hatchery',
    title: 'hatchery-core 0.3.0 (torch)',
    requirements: 'hatchery.txt',
    trainingBodies: 'json',
    patienceSeconds: 10,
    recording: 'results.hatchery-0.3.0.sdk-0.18.2.json',
    ignoresStopTokens: true,
    launch: ({ port }) => ({
      args: [join(pythonFolder, 'serve_hatchery.py'), MODEL, String(port), API_KEY],
      env: { HF_HUB_OFFLINE: '1', CUDA_VISIBLE_DEVICES: '' },
    }),
    differences: HATCHERY,
  },
];

function jaxServer({ python, port, folder }: Parameters<Launch>[0], start: readonly string[]): ReturnType<Launch> {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'uv'), `#!/bin/sh\nexec "${python}" "${join(pythonFolder, 'uv.py')}" "$@"\n`, { mode: 0o755 });
  const place = ['--host', '127.0.0.1', '--port', String(port), '--database-url', `sqlite:///${join(folder, 'tinker.db')}`];
  const model = ['--base-model', MODEL, '--backend', 'jax', '--backend-config', BACKEND_CONFIG];
  return {
    args: [...start, ...model, ...place, '--checkpoints-base', join(folder, 'checkpoints')],
    env: {
      PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`,
      PYTHONPATH: join(pythonFolder, 'standins'),
      JAX_PLATFORMS: 'cpu',
      // Most of a first drive is compiling; later ones find it done.
      JAX_COMPILATION_CACHE_DIR: join(folder, '..', 'jax-cache'),
      JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: '0',
      JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES: '0',
      HF_HUB_OFFLINE: '1',
    },
  };
}
