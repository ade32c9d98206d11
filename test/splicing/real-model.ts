import { type ChatRendererOptions, chatRenderer } from '../../services/gateway/renderers/chat-renderer.ts';
import { loadChatTemplate } from '../../services/gateway/template/chat-template.ts';
import { loadTokenizer } from '../../services/gateway/tokenizer/native.ts';
import { type TestFamily, testModel } from '../support/tokenizers.ts';

/** A real family's tokenizer, template and renderer. */
export async function realModel(name: TestFamily, options: Partial<ChatRendererOptions> = {}) {
  const { folder } = await testModel(name);
  const tokenizer = await loadTokenizer(folder, name);
  const template = await loadChatTemplate(folder, { nowMs: Date.UTC(2026, 0, 2) });
  return { tokenizer, template, renderer: await chatRenderer({ name, tokenizer, template, ...options }) };
}

export type RealModel = Awaited<ReturnType<typeof realModel>>;
