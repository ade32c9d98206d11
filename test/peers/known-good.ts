import type { DriveResults } from '../tinker-drive/recorder.ts';
import type { Verdict } from './compare.ts';

/** Log-probabilities of the targets under the untrained model: what torch and JAX agree on to 3e-6, in nats. */
const LOGPROBS = [
  [-7.257073, -8.180554, -7.480976, -8.981557, -5.002116, -7.873777],
  [-5.54971, -6.608242, -8.110727, -7.828302],
] as const;
const TOLERANCE_NATS = 1e-4;
const STEPS = ['forward_cross_entropy', 'forward_backward_cross_entropy'];

type LossResult = { readonly loss_fn_outputs?: readonly { readonly logprobs?: { readonly data: readonly (number | null)[] } }[] };

/** An untrained LoRA changes nothing, so both steps must score the base model. */
export function judgeKnownGood({ steps }: DriveResults): Verdict {
  let worst = 0;
  for (const name of STEPS) {
    const outputs = (steps.find(({ step }) => step === name)?.result as LossResult | undefined)?.loss_fn_outputs;
    for (const [i, expected] of LOGPROBS.entries()) {
      const logprobs = outputs?.[i]?.logprobs?.data;
      if (logprobs?.length !== expected.length) return { kind: 'failed', words: `${name} has no log-probabilities of sequence ${i}` };
      worst = Math.max(worst, ...expected.map((value, t) => Math.abs((logprobs[t] ?? Number.NaN) - value)));
    }
  }
  const words = `the farthest of 20 log-probabilities is ${worst.toExponential(1)} nats off`;
  return { kind: worst <= TOLERANCE_NATS ? 'same' : 'failed', words };
}
