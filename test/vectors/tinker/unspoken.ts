/** Calls of the official client that ours does not speak, each with the reason. Any other recorded call must be one of ours. */
const UNSPOKEN: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^POST telemetry$/, 'no telemetry is sent'],
  [/^GET sessions\/[^/]+\/trace_export$/, 'traces are not exported'],
  [/^POST create_custom_loss$/, 'custom losses are not uploaded'],
  [/^POST join_sampling_session$/, 'clones of a sampler take a number at random'],
  [/^GET healthz$/, 'the first real call tells as much'],
  [/^GET training_runs\/.+\/archive$/, 'archives are of older services; external weights replace them'],
  [/^(GET|DELETE) auth\/apikey\/me$/, 'logging in and out is done with the official tool'],
];

/** Why our client never makes a call; null when it should. */
export function whyUnspoken({ method, path }: { readonly method: string; readonly path: string }): string | null {
  const name = `${method} ${path.replace('/api/v1/', '')}`;
  return UNSPOKEN.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}
