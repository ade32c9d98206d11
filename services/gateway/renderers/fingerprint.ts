import { createHash } from 'node:crypto';
import type { ChatMessage, ChatRenderer, RendererFingerprint } from '../renderer.ts';

/** One of each thing a template may treat specially. Changing it changes every fingerprint. */
const PROBE: readonly ChatMessage[] = [
  { role: 'system', content: 'You are careful.' },
  { role: 'user', content: ' List the files.\nThen stop. ' },
  { role: 'assistant', content: 'ls' },
  { role: 'user', content: '[0] a b' },
];

/**
 * Digests of what the template does (ids of a probe conversation, with and without generation prompt, and the stop ids)
 * and of the vocabulary (every id's string in order). By behaviour, not by name: two names for one template agree.
 */
export async function fingerprintOf(renderer: Omit<ChatRenderer, 'fingerprint'>): Promise<RendererFingerprint> {
  const template = createHash('sha256').update(JSON.stringify(renderer.stopTokens));
  for (const addGenerationPrompt of [true, false]) {
    const ids = await renderer.render(PROBE, { tools: [], addGenerationPrompt });
    template.update(`|${addGenerationPrompt}|`).update(ids.join(','));
  }
  const vocabulary = createHash('sha256');
  const { size, idToString } = renderer.vocabulary;
  for (let id = 0; id < size; id++) vocabulary.update(`${JSON.stringify(idToString(id))}\n`);
  return { template: template.digest('hex'), vocabulary: vocabulary.digest('hex') };
}
