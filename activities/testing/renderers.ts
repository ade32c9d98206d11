import { TINY_RENDERER } from '../../core/config/index.ts';
import { rendererFor } from '../../services/gateway/index.ts';
import type { RendererOf } from '../renderers.ts';

/** Every model is read as the tiny one is. */
export const tinyRendererOf: RendererOf = async (_, model) => rendererFor({ name: TINY_RENDERER, model });
