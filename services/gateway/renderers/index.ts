import type { ChatRenderer } from '../renderer.ts';
import { tinyAsciiRenderer } from './tiny-ascii.ts';

const MAKERS = [tinyAsciiRenderer] as const;

/** A renderer or tokenizer that this build does not have. */
export class UnknownRendererError extends Error {
  override readonly name = 'UnknownRendererError';
}

/** What is known of a model: the config's name for its renderer (`rollout.renderers`), its tokenizer id, or both. */
export type RendererQuery = { readonly name?: string | undefined; readonly tokenizer?: string; readonly model?: string };

/**
 * The renderer of a model. Its name decides; without one, the tokenizer id.
 * @throws UnknownRendererError when neither is known, or when the named renderer writes another tokenizer's ids.
 */
export function rendererFor({ name, tokenizer, model = 'this model' }: RendererQuery): ChatRenderer {
  const all = MAKERS.map((make) => make());
  const found = all.find((renderer) => (name ? renderer.name === name : renderer.tokenizer === tokenizer));
  if (!found) {
    const asked = name ? `"${name}"` : `for ${model}${tokenizer ? ` (tokenizer "${tokenizer}")` : ''}`;
    const known = all.map((renderer) => `${renderer.name} (tokenizer ${renderer.tokenizer})`).join(', ');
    throw new UnknownRendererError(`There is no renderer ${asked}. Known: ${known}. Name one of them in rollout.renderers for ${model}.`);
  }
  if (tokenizer !== undefined && found.tokenizer !== tokenizer)
    throw new UnknownRendererError(
      `Renderer "${found.name}" writes ids of tokenizer "${found.tokenizer}", but ${model} uses "${tokenizer}". Correct rollout.renderers.`,
    );
  return found;
}
