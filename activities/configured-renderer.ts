import type { RunConfig } from '../core/config/index.ts';
import { type ChatRenderer, rendererFor } from '../services/gateway/index.ts';

/** The renderer that the config names for a model. @throws UnknownRendererError when it names none that is known. */
export function configuredRenderer(config: RunConfig, model: string): ChatRenderer {
  return rendererFor({ name: config.rollout.renderers[model], model });
}
