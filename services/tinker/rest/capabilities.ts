import { z } from 'zod';
import type { Caller } from '../http/caller.ts';
import { getJson } from './request.ts';

export type Capabilities = { readonly supportedModels: readonly SupportedModel[] };

/** Null where the service does not say. */
export type SupportedModel = {
  readonly modelName: string | null;
  readonly maxContextLength: number | null;
  readonly isTrainable: boolean | null;
  readonly isSampleable: boolean | null;
};

const capabilitiesSchema = z.object({
  supported_models: z.array(
    z.object({
      model_name: z.string().nullish(),
      max_context_length: z.number().nullish(),
      trainable: z.boolean().nullish(),
      sampleable: z.boolean().nullish(),
    }),
  ),
});

export async function serverCapabilities(caller: Caller): Promise<Capabilities> {
  const { supported_models } = await getJson(caller, 'get_server_capabilities', {}, capabilitiesSchema);
  const supportedModels = supported_models.map((model) => ({
    modelName: model.model_name ?? null,
    maxContextLength: model.max_context_length ?? null,
    isTrainable: model.trainable ?? null,
    isSampleable: model.sampleable ?? null,
  }));
  return { supportedModels };
}
