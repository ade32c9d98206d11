/** Where the hosted service answers OpenAI-style requests, unless the app settings name another endpoint. */
export const HOSTED_SERVING_ENDPOINT = 'https://tinker.thinkingmachines.dev/services/tinker-prod/oai/api/v1';

/** Where a Tinker-compatible service answers OpenAI-style requests, by its base URL; the hosted one without. */
export const servingEndpointOf = (baseUrl: string | undefined): string =>
  baseUrl ? `${baseUrl.replace(/\/+$/, '')}/oai/api/v1` : HOSTED_SERVING_ENDPOINT;

/** The `[models.agent]` table that points an agent at promoted weights. */
export type ModelsAgent = {
  readonly provider: 'openai';
  readonly model: string;
  readonly model_type: string;
  readonly endpoint: string;
};

export type HandoffRefusal = { readonly kind: 'not_a_tinker_path' | 'unembeddable'; readonly which: string };

/** A value that cannot stand in the handoff; says which one and why. */
export class HandoffRefused extends Error {
  override readonly name = 'HandoffRefused';
  readonly refusal: HandoffRefusal;
  constructor(refusal: HandoffRefusal, message: string) {
    super(message);
    this.refusal = refusal;
  }
}

/** @throws HandoffRefused for a path that names no weights, or a value with a quote, a backslash or a control character other than tab. */
export function modelsAgent(input: { samplerPath: string; baseModel: string; endpoint: string }): ModelsAgent {
  const { samplerPath, baseModel, endpoint } = input;
  if (!/^tinker:\/\/./s.test(samplerPath))
    throw new HandoffRefused(
      { kind: 'not_a_tinker_path', which: 'sampler path' },
      `the sampler path must start with tinker:// and name weights; got ${JSON.stringify(samplerPath)}`,
    );
  for (const [which, value] of Object.entries({ 'sampler path': samplerPath, 'base model': baseModel, endpoint }))
    if (/["\\]|[^\P{Cc}\t]/u.test(value))
      throw new HandoffRefused(
        { kind: 'unembeddable', which },
        `the ${which} holds a quote, a backslash or a control character: ${JSON.stringify(value)}`,
      );
  return { provider: 'openai', model: samplerPath, model_type: baseModel, endpoint };
}

/** The table as TOML text, ready to paste. Values were checked by `modelsAgent`, so they need no escapes. */
export function handoffToml(table: ModelsAgent): string {
  return ['[models.agent]', ...Object.entries(table).map(([key, value]) => `${key} = "${value}"`), ''].join('\n');
}
