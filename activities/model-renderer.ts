import type { RendererChoice } from '../core/config/index.ts';
import { familyOf } from '../services/gateway/families/family-of.ts';
import type { ChatRenderer } from '../services/gateway/index.ts';
import { chatRenderer } from '../services/gateway/renderers/chat-renderer.ts';
import { chatTemplateOf } from '../services/gateway/template/chat-template.ts';
import { readTokenizerConfig } from '../services/gateway/template/config.ts';
import type { Tokenizer } from '../services/gateway/tokenizer/tokenizer.ts';

/** The config's name for a renderer does not fit the model's own template. */
export class RendererRefused extends Error {
  override readonly name = 'RendererRefused';
}

export type RendererOrder = {
  readonly model: string;
  /** The config's name for its renderer; without one it has the name of its family. */
  readonly name: string | undefined;
  readonly folder: string;
  /** Of the files in it. */
  readonly digest: string;
  /** What the name stands for; the families are null where there is none. */
  readonly choice: Omit<RendererChoice, 'families'> & { readonly families: RendererChoice['families'] | null };
  /** What templates take for the time of day. */
  readonly nowMs: number;
  readonly tokenizer: Tokenizer;
};

export type LoadRenderer = (order: RendererOrder) => Promise<ChatRenderer>;

/** The renderer of a model's own template. @throws RendererRefused, and what the template's loader throws */
export const loadModelRenderer: LoadRenderer = async ({ model, name, folder, digest, choice, nowMs, tokenizer }) => {
  const { families, switches, retain } = choice;
  const config = await readTokenizerConfig(folder);
  const template = chatTemplateOf(folder, config, { kwargs: switches, nowMs });
  const family = familyOf(tokenizer, template);
  if (families !== null && !families.includes(family.name))
    throw new RendererRefused(
      `rollout.renderers calls the renderer of ${model} "${name}", but the chat template in ${folder} is of the family ${family.name}, not ${families.join(' or ')}. ` +
        'Correct the name, or leave it out: then the template decides',
    );
  const missing = Object.keys(switches).filter((key) => !template.source.includes(key));
  if (missing.length > 0)
    throw new RendererRefused(
      `rollout.renderers calls the renderer of ${model} "${name}", but the chat template in ${folder} has no ${missing.join(', ')}. Leave the name out`,
    );
  const renderer = await chatRenderer({
    name: name ?? family.name,
    tokenizer,
    template,
    family,
    retain,
    stopTokens: config.eosTokenIds,
  }).catch((cause) => {
    throw new RendererRefused(`the files of ${model} in ${folder}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  });
  // Models that have the same files share a tokenizer.
  return { ...renderer, tokenizer: `${model}, files ${digest.slice(0, 12)}` };
};
