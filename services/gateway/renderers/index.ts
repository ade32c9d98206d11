import type { ChatRenderer } from '../renderer.ts';
import { tinyAsciiRenderer } from './tiny-ascii.ts';

const MAKERS = [tinyAsciiRenderer] as const;

/** A renderer or tokenizer that this build does not have. */
export class UnknownRendererError extends Error {
  override readonly name = 'UnknownRendererError';
}

/**
 * The renderer of a model. `name` is the config's (`rollout.renderers`); without it the tokenizer id decides.
 * @throws UnknownRendererError when neither is known, or when the named renderer writes another tokenizer's ids.
 */
export function rendererFor(model: { readonly name?: string | undefined; readonly tokenizer: string }): ChatRenderer {
  const all = MAKERS.map((make) => make());
  const found = all.find((renderer) => (model.name ? renderer.name === model.name : renderer.tokenizer === model.tokenizer));
  if (!found) {
    const asked = model.name ? `renderer "${model.name}"` : `a renderer for tokenizer "${model.tokenizer}"`;
    const known = all.map((renderer) => `${renderer.name} (tokenizer ${renderer.tokenizer})`).join(', ');
    throw new UnknownRendererError(`There is no ${asked}. Known: ${known}. Name one of them in rollout.renderers, or train another model.`);
  }
  if (found.tokenizer !== model.tokenizer)
    throw new UnknownRendererError(
      `Renderer "${found.name}" writes ids of tokenizer "${found.tokenizer}", but the model uses "${model.tokenizer}". ` +
        'Correct rollout.renderers for this model.',
    );
  return found;
}
