import type { TrialUse } from '../../core/money/trial-limit.ts';
import { contextOverflow, GatewayError } from './errors.ts';
import type { TrialRecorder } from './record.ts';
import type { TrialOptions } from './trial-options.ts';

/** Room for one answer, held until it is there. `roomTokens` is what it may have apart from what the trial has used; `maxTokens` what it may have now. */
export type Room = Disposable & {
  readonly roomTokens: number;
  readonly maxTokens: number;
  /** To be told how the answer ended: one that was cut short by a limit of the trial is noted. */
  ended(stop: 'stop' | 'length'): void;
};

/** What a trial may use. Everything is checked before anything is sampled. */
export class TrialLimits {
  readonly #options: TrialOptions;
  readonly #recorder: TrialRecorder;
  readonly #held = new Set<TrialUse['inFlight'][number]>();

  constructor(options: TrialOptions, recorder: TrialRecorder) {
    this.#options = options;
    this.#recorder = recorder;
  }

  /** @throws GatewayError when the trial has made all its calls, those under way included */
  refuseBeyondCalls(underWay: number): void {
    const { maxCalls } = this.#options;
    if (maxCalls === undefined || this.#recorder.calls + underWay < maxCalls) return;
    this.#recorder.limited('call');
    throw new GatewayError('call_limit_reached', `This trial may call the model ${maxCalls} times, and has. Stop the agent.`);
  }

  /**
   * Room for the answer to a prompt. A prompt is never clipped, only the room for the answer is.
   * @throws GatewayError when there is none: in the context, or in what the trial may still sample or cost
   */
  hold(prompt: Int32Array, askedTokens: number | null): Room {
    const roomTokens = this.#fit(prompt.length, askedTokens);
    const sampleable = this.#sampleable();
    const affordable = this.#affordable(prompt);
    const maxTokens = Math.min(roomTokens, sampleable, affordable);
    const held = { promptTokens: prompt.length, maxTokens };
    this.#held.add(held);
    return {
      roomTokens,
      maxTokens,
      ended: (stop) => {
        if (stop === 'length' && maxTokens < roomTokens) this.#recorder.limited(sampleable < affordable ? 'token' : 'usd');
      },
      [Symbol.dispose]: () => void this.#held.delete(held),
    };
  }

  #fit(promptTokens: number, askedTokens: number | null): number {
    const { contextLimitTokens, maxTokensPerCall } = this.#options;
    const roomTokens = contextLimitTokens - promptTokens;
    if (roomTokens < 1) {
      this.#recorder.overflowed();
      throw contextOverflow(promptTokens, contextLimitTokens);
    }
    return Math.min(askedTokens ?? maxTokensPerCall, maxTokensPerCall, roomTokens);
  }

  #sampleable(): number {
    const { maxSampledTokens } = this.#options;
    if (maxSampledTokens === undefined) return Number.POSITIVE_INFINITY;
    const { sampledTokens, wasted } = this.#recorder;
    const mayCome = [...this.#held].reduce((sum, { maxTokens }) => sum + maxTokens, 0);
    const left = maxSampledTokens - sampledTokens - wasted.sampledTokens - mayCome;
    if (left >= 1) return left;
    this.#recorder.limited('token');
    throw new GatewayError('token_limit_reached', `This trial may sample ${maxSampledTokens} tokens, and has. Stop the agent.`);
  }

  #affordable(prompt: Int32Array): number {
    const { spendLimit } = this.#options;
    if (spendLimit === undefined) return Number.POSITIVE_INFINITY;
    const { spans, wasted } = this.#recorder;
    const tokens = spendLimit.mostTokens({ spans, wasted, inFlight: [...this.#held], prompt });
    if (tokens >= 1) return tokens;
    this.#recorder.limited('usd');
    const message = `This trial may cost $${spendLimit.limitUsd}, and one more call does not fit. Stop the agent.`;
    throw new GatewayError('usd_limit_reached', message);
  }
}
