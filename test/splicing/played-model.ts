import type { SampleRequest, SampleResult, TokenSampler } from '../../services/gateway/token-sampler.ts';
import type { PlannedTurn } from './arbitraries.ts';
import type { Accent, Speech } from './model-speech.ts';
import { sampledIds } from './model-speech.ts';
import type { RealModel } from './real-model.ts';

export type Exchange = { readonly prompt: Int32Array; readonly gave: Int32Array };

/** A sampler that says what is planned, call after call, and keeps what it was asked and what it gave. */
export function playedModel({ tokenizer, renderer }: RealModel, accent: Accent, opensReasoning: boolean) {
  const plans: { turn: PlannedTurn; withTools: boolean }[] = [];
  const exchanges: Exchange[] = [];
  const sampler: TokenSampler = {
    version: 'step-0001',
    async sample({ prompt }: SampleRequest): Promise<SampleResult> {
      const plan = plans.shift();
      if (plan === undefined) throw new Error('nothing is planned for this call');
      const asked = Int32Array.from(prompt);
      const whole = await idsOf(plan.turn, plan.withTools);
      const { cut } = plan.turn;
      const gave = cut === null ? whole : whole.slice(0, Math.max(1, Math.floor(cut * (whole.length - 1))));
      exchanges.push({ prompt: asked, gave: Int32Array.from(gave) });
      const stop = renderer.stopTokens.includes(gave.at(-1) ?? -1) ? 'stop' : 'length';
      return { tokens: gave, logprobs: new Float32Array(gave.length).fill(-0.25), stop, promptCacheHitTokens: 0 };
    },
  };

  function idsOf(turn: PlannedTurn, withTools: boolean): Promise<Int32Array> {
    const calls = withTools ? turn.calls.slice(0, accent.mostCalls).map((given) => ({ name: 'bash', arguments: given })) : [];
    const text = turn.outerSpace ? ` ${turn.text}\n` : turn.text;
    const speech: Speech = {
      reasoning: accent.reasons ? turn.reasoning : '',
      text: calls.length > 0 && turn.cutEvery > 1 ? '' : text,
      calls,
    };
    const close = accent.close(speech);
    const spelled = { ...speech, text: turn.lookAlike && calls.length === 0 ? `${speech.text}${close}${speech.text}` : speech.text };
    const written = accent.write(spelled, opensReasoning);
    const asText = turn.lookAlike ? [close] : [];
    return Promise.all([
      sampledIds(tokenizer, written, { cutEvery: turn.lookAlike ? Math.max(2, turn.cutEvery) : turn.cutEvery, asText }),
      sampledIds(tokenizer, close, { cutEvery: 0 }),
    ]).then(([said, end]) => Int32Array.of(...said, ...end));
  }

  return {
    sampler,
    exchanges,
    plan: (turn: PlannedTurn, withTools: boolean) => void plans.push({ turn, withTools }),
  };
}
