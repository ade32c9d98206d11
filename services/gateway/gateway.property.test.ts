import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ChatMessage } from './renderer.ts';
import { tinyAsciiRenderer } from './renderers/tiny-ascii.ts';
import { gatewayFixture } from './testing/gateway-fixture.ts';
import { textOf } from './testing/scripted-sampler.ts';
import type { SampleRequest, TokenSampler } from './token-sampler.ts';

const { open, post } = gatewayFixture();
const RUNS = 60;

/** What an agent may do between two calls. */
type Move =
  | { readonly kind: 'go on' | 'retry' }
  | { readonly kind: 'trim'; readonly keep: number }
  | { readonly kind: 'edit'; readonly at: number; readonly text: string }
  | { readonly kind: 'go back'; readonly to: number; readonly text: string };

const text = fc.string({ unit: 'grapheme', maxLength: 8 });
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: 'go on' } as const) },
  fc.constant({ kind: 'retry' } as const),
  fc.record({ kind: fc.constant('trim' as const), keep: fc.nat(4) }),
  fc.record({ kind: fc.constant('edit' as const), at: fc.nat(12), text }),
  fc.record({ kind: fc.constant('go back' as const), to: fc.nat(12), text }),
);
const turn = fc.record({ move, observation: text, sampled: fc.array(fc.nat(127), { minLength: 1, maxLength: 9 }), closes: fc.boolean() });
type TurnPlan = typeof turn extends fc.Arbitrary<infer T> ? T : never;

/** Returns the planned ids of each turn, ended by the stop token where planned, and keeps what it was asked. */
function plannedSampler(plan: readonly TurnPlan[]): TokenSampler & { readonly asked: SampleRequest[]; readonly gave: Int32Array[] } {
  const asked: SampleRequest[] = [];
  const gave: Int32Array[] = [];
  return {
    version: 'step-0000',
    asked,
    gave,
    async sample(request) {
      const { sampled, closes } = plan[asked.push({ ...request, prompt: request.prompt.slice() }) - 1] as TurnPlan;
      const tokens = Int32Array.from([...sampled, ...(closes ? [10] : [])]);
      gave.push(tokens.slice());
      const logprobs = Float32Array.from(tokens, (_, index) => -index / 8);
      return { tokens, logprobs, stop: closes ? 'stop' : 'length', promptCacheHitTokens: 0 };
    },
  };
}

/** The agent's next conversation: it has appended the answer and an observation, then does its move. */
function next(history: readonly ChatMessage[], said: ChatMessage, { move: did, observation }: TurnPlan): ChatMessage[] {
  const appended: ChatMessage[] = [...history, said, { role: 'user', content: observation }];
  if (did.kind === 'retry') return [...history];
  if (did.kind === 'trim') return appended.slice(-1 - did.keep);
  if (did.kind === 'edit') return appended.map((m, index) => (index === did.at % appended.length ? { ...m, content: did.text } : m));
  if (did.kind === 'go back') return [...appended.slice(0, did.to % appended.length), { role: 'user', content: did.text }];
  return appended;
}

it('whatever the agent does, what is recorded is what was sampled, in order, and an intact history continues its ids', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 2, maxLength: 10 }), async (plan) => {
      const tiny = tinyAsciiRenderer();
      const encoded: string[] = [];
      const renderer = {
        ...tiny,
        async render(...args: Parameters<typeof tiny.render>) {
          const prompt = await tiny.render(...args);
          encoded.push(textOf(prompt));
          return prompt;
        },
        async extend(request: Parameters<typeof tiny.extend>[0]) {
          const extension = await tiny.extend(request);
          if ('delta' in extension) encoded.push(textOf(extension.delta));
          return extension;
        },
      };
      const sampler = plannedSampler(plan);
      await using session = open(sampler, { renderer, contextLimitTokens: 4096 });
      let history: ChatMessage[] = [{ role: 'user', content: 'start' }];
      const intact: boolean[] = [];
      for (const planned of plan) {
        const response = await post(session, { messages: history });
        const { choices } = (await response.json()) as { choices: [{ message: ChatMessage }] };
        intact.push(planned.move.kind === 'go on');
        history = next(history, choices[0].message, planned);
        if (history.at(-1)?.role === 'assistant') history.push({ role: 'user', content: 'on' });
      }

      const { spans, links, calls, fragments } = session.record();
      expect(calls).toBe(plan.length);
      expect(spans.map(({ callIndex }) => callIndex)).toEqual(plan.map((_, index) => index));
      expect(spans.map(({ prompt }) => prompt)).toEqual(sampler.asked.map(({ prompt }) => prompt));
      expect(spans.map(({ sampled }) => sampled)).toEqual(sampler.gave);
      expect(Object.values(fragments).reduce((sum, count) => sum + count, 0)).toBe(links.filter(({ cause }) => cause).length);

      for (const [index, { prompt, sampled }] of spans.entries()) {
        const { parentCall } = links[index] ?? { parentCall: null };
        const parent = parentCall === null ? undefined : spans[parentCall];
        const inherited = parent ? [...parent.prompt, ...parent.sampled] : [];
        // Ids of earlier turns are taken over as they are; only the text behind them went through the tokenizer, once.
        expect([...prompt.slice(0, inherited.length)]).toEqual(inherited);
        expect(textOf(prompt.slice(inherited.length))).toBe(encoded[index]);
        if (!intact[index] || index + 1 === spans.length) continue;
        const { observation } = plan[index] as TurnPlan;
        const glue = sampled.at(-1) === 10 ? '' : '\n';
        const added = await tiny.tokenize(`${glue}${observation}\n$ `);
        expect([...(spans[index + 1]?.prompt ?? [])]).toEqual([...prompt, ...sampled, ...added]);
      }
    }),
    { numRuns: RUNS },
  );
}, 60_000);
