/** How fast the engine is: CPU milliseconds per 1,000 tokens, and per decoded token at several batch sizes. `node bench/engine-speed.ts` */
import { Decoder, initialWeights, LoraModel, promptLogprobs, TINY_SHAPE } from '../trainer/engine/index.ts';

const EPISODE_TOKENS = 70;
const EPISODES = 128;
const PROMPT_TOKENS = 40;
const DECODED_TOKENS = 24;

const base = initialWeights(TINY_SHAPE, 1);
const episodes = Array.from({ length: EPISODES }, (_, e) =>
  Int32Array.from({ length: EPISODE_TOKENS + 1 }, (_, i) => (e * 31 + i * i * 17) % TINY_SHAPE.vocab),
);

/** The fastest of five runs after a warm-up, in milliseconds of this process's CPU time. */
const cpuMs = (run: () => void): number => {
  run();
  const times = Array.from({ length: 5 }, () => {
    const start = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  });
  return Math.min(...times);
};

const perThousand = (ms: number): string => `${((ms / (EPISODES * EPISODE_TOKENS)) * 1000).toFixed(1)} ms per 1,000 tokens`;
console.log(`scoring            ${perThousand(cpuMs(() => promptLogprobs(base, episodes)))}`);

const model = LoraModel.create(base, { rank: 8, seed: 1, trainAttn: true, trainMlp: true });
const datums = episodes.map((ids) => ({
  tokens: ids.slice(0, -1),
  targets: ids.slice(1),
  logprobs: new Float32Array(EPISODE_TOKENS).fill(-4),
  advantages: new Float32Array(EPISODE_TOKENS).fill(0.1),
}));
console.log(`forward_backward   ${perThousand(cpuMs(() => model.forwardBackward({ loss: 'importance_sampling', datums })))}`);
const adam = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 };
console.log(`optim_step         ${cpuMs(() => model.optimStep(adam)).toFixed(1)} ms`);

const decoder = new Decoder({ cachedSequences: 64 });
let seed = 0;
for (const batch of [1, 4, 8, 32]) {
  const rounds = 64 / batch;
  const ms = cpuMs(() => {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < batch; i++) {
        seed += 1;
        const prompt = Int32Array.from({ length: PROMPT_TOKENS }, (_, at) => (seed * 7 + at * at) % TINY_SHAPE.vocab);
        const request = {
          weights: base,
          prompt,
          maxTokens: DECODED_TOKENS,
          temperature: 1,
          stopTokens: [],
          seed,
          promptLogprobs: false,
          topkPromptLogprobs: 0,
        };
        decoder.submit(request);
      }
      while (decoder.isBusy) decoder.step();
    }
  });
  const tokens = rounds * batch * DECODED_TOKENS;
  console.log(
    `decoding, batch ${String(batch).padEnd(2)} ${(ms / tokens).toFixed(3)} ms per token, a prompt of ${PROMPT_TOKENS} per ${DECODED_TOKENS} tokens included`,
  );
}
