import { beforeAll, describe, expect, test } from 'vitest';
import { compileChatTemplate } from '../../services/gateway/template/chat-template.ts';
import { readTokenizerConfig } from '../../services/gateway/template/config.ts';
import { type ChatTemplate, TemplateRefusal } from '../../services/gateway/template/template.ts';
import { loadTokenizer } from '../../services/gateway/tokenizer/native.ts';
import type { Tokenizer } from '../../services/gateway/tokenizer/tokenizer.ts';
import { FETCH_LIMIT_MS, testModel } from '../support/tokenizers.ts';
import { EXCEPTIONS } from './exceptions.ts';
import { NOW_MS, PARITY_FAMILIES, type ParityFamily } from './families.ts';
import { type Case, type Expected, expectedIds, parityConversations, parityTexts } from './fixtures.ts';

/** Compares a family with what Python's transformers made of the same texts and conversations. */
export function parityOf(family: ParityFamily): void {
  describe(`${family}, against Python's transformers`, () => {
    let folder: string;
    let tokenizer: Tokenizer;
    beforeAll(async () => {
      ({ folder } = await testModel(family));
      tokenizer = await loadTokenizer(folder, family);
    }, FETCH_LIMIT_MS);

    if (PARITY_FAMILIES[family].ownVocabulary)
      test('texts have the same ids', async () => {
        const found = await Promise.all(parityTexts().map((text) => tokenizer.encode(text)));
        expect(found.length).toBeGreaterThanOrEqual(300);
        expect(differing(found, expectedIds(`${family}.texts.txt`))).toEqual(listed(family, 'texts'));
      });

    test('the bytes of the ids of a text are those of their decoded text', async () => {
      for (const text of parityTexts()) {
        const ids = await tokenizer.encode(text);
        expect(Buffer.concat(Array.from(ids, (id) => tokenizer.bytesOf(id))).toString('utf8')).toBe(await tokenizer.decode(ids));
      }
    });

    test('conversations have the same ids', async () => {
      const cases = parityConversations();
      const render = await renderer(folder, tokenizer);
      const found = await Promise.all(cases.map(render));
      expect(cases.length).toBeGreaterThanOrEqual(200);
      expect(differing(found, expectedIds(`${family}.conversations.txt`))).toEqual(listed(family, 'conversations'));
    });
  });
}

/** Compiles a template once for each set of its own arguments, and gives null where it refuses. */
async function renderer(folder: string, tokenizer: Tokenizer): Promise<(one: Case) => Promise<Expected>> {
  const { chatTemplate, specialTokens } = await readTokenizerConfig(folder);
  if (chatTemplate === null) throw new Error(`${folder} has no chat template`);
  const compiled = new Map<string, ChatTemplate>();
  return async ({ kwargs, ...input }) => {
    const key = JSON.stringify(kwargs);
    const template = compiled.get(key) ?? compileChatTemplate(chatTemplate, { kwargs, specialTokens, nowMs: NOW_MS });
    compiled.set(key, template);
    try {
      return await tokenizer.encode(template.render(input));
    } catch (error) {
      if (error instanceof TemplateRefusal) return null;
      throw error;
    }
  };
}

/** The cases that differ, and what is found there; an exception that is listed but does not differ fails the comparison, too. */
function differing(found: readonly Expected[], expected: readonly Expected[]): Record<number, string> {
  expect(found.length).toBe(expected.length);
  const differences: Record<number, string> = {};
  for (const [index, ids] of found.entries()) {
    const wanted = expected[index] ?? null;
    if (ids === null || wanted === null) {
      if (ids !== wanted) differences[index] = ids === null ? 'only ours refuses' : 'only Python raises';
    } else if (Buffer.compare(Buffer.from(ids.buffer), Buffer.from(wanted.buffer)) !== 0) differences[index] = 'other ids';
  }
  return differences;
}

function listed(family: ParityFamily, kind: 'texts' | 'conversations'): Record<number, string> {
  return Object.fromEntries(
    EXCEPTIONS.filter((exception) => exception.kind === kind && exception.families.includes(family)).flatMap(({ cases, difference }) =>
      cases.map((index) => [index, difference]),
    ),
  );
}
