/**
 * On-policy distillation with the engine and the simulated shell alone: does the recipe learn, and how far do entropy and length move?
 *
 *   node bench/engine-learn.ts [--steps 16] [--tasks 32] [--seed 1] [--lr 3e-3] [--permute]
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type QuickTask, quickstartSplits } from '../examples/quickstart/content.ts';
import { Decoder, type DenseWeights, LoraModel, loadWeights, type PolicyRows, promptLogprobs } from '../trainer/engine/index.ts';
import { uniformStream } from '../trainer/engine/random.ts';
import { playEpisodes, type SimulatedEpisode, solveRate } from './engine-episodes.ts';

const ATTEMPTS = 4;
const ADVANTAGE_CLIP = 5;
const HELD_OUT_ATTEMPTS = 8;

const { values: options } = parseArgs({
  options: {
    steps: { type: 'string', default: '16' },
    tasks: { type: 'string', default: '32' },
    seed: { type: 'string', default: '1' },
    lr: { type: 'string', default: '3e-3' },
    permute: { type: 'boolean', default: false },
  },
});
const seed = Number(options.seed);

const weightsOf = (name: string): DenseWeights => {
  const file = new URL(`../trainer/weights/tiny-${name}.safetensors`, import.meta.url);
  return loadWeights(readFileSync(file), file.pathname);
};

const shuffle = <T>(items: readonly T[], uniform: () => number): T[] => {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(uniform() * (i + 1));
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
};

const scoreAdvantages = (teacher: DenseWeights, episodes: readonly SimulatedEpisode[]): number[][] => {
  const scores = promptLogprobs(
    teacher,
    episodes.map(({ tokens }) => Int32Array.from(tokens)),
  );
  return episodes.map(({ mask, logprobs }, e) =>
    mask.map((sampled, i) => {
      const gap = (scores[e]?.[i] ?? 0) - (logprobs[i] ?? 0);
      return sampled ? Math.max(-ADVANTAGE_CLIP, Math.min(ADVANTAGE_CLIP, gap)) : 0;
    }),
  );
};

/** Deals the advantages of all sampled tokens out again at random: the same numbers with nothing to learn from. */
const permuted = (advantages: readonly number[][], episodes: readonly SimulatedEpisode[], uniform: () => number): number[][] => {
  const deck = shuffle(
    advantages.flatMap((row, e) => row.filter((_, i) => episodes[e]?.mask[i])),
    uniform,
  );
  return advantages.map((row, e) => row.map((_, i) => (episodes[e]?.mask[i] ? (deck.pop() ?? 0) : 0)));
};

const policyRows = ({ tokens, logprobs }: SimulatedEpisode, advantages: readonly number[]): PolicyRows => ({
  tokens: Int32Array.from(tokens.slice(0, -1)),
  targets: Int32Array.from(tokens.slice(1)),
  logprobs: Float32Array.from(logprobs.slice(1)),
  advantages: Float32Array.from(advantages.slice(1)),
});

const teacher = weightsOf('teacher');
const model = LoraModel.create(weightsOf('student'), { rank: 8, seed, trainAttn: true, trainMlp: true });
const decoder = new Decoder({ cachedSequences: 160 });
const uniform = uniformStream(seed);
const { train, holdout } = quickstartSplits();
const heldOut = (weights: DenseWeights): number => {
  const tasks = Array.from({ length: HELD_OUT_ATTEMPTS }, () => holdout).flat();
  return solveRate(playEpisodes(decoder, weights, tasks, 1_000_000 + seed * 10_000));
};

let order: QuickTask[] = [];
const nextTasks = (count: number): QuickTask[] => {
  while (order.length < count) order = [...order, ...shuffle(train, uniform)];
  return order.splice(0, count);
};

console.log(`held-out, temperature 1, ${holdout.length} tasks × ${HELD_OUT_ATTEMPTS}`);
console.log(`teacher ${heldOut(teacher).toFixed(3)}  student before ${heldOut(model.base).toFixed(3)}`);
let first: { entropy: number; length: number } | null = null;
const cpuStart = process.cpuUsage();
for (let step = 0; step < Number(options.steps); step++) {
  const tasks = nextTasks(Number(options.tasks)).flatMap((task) => Array.from({ length: ATTEMPTS }, () => task));
  const episodes = playEpisodes(decoder, model.merged(), tasks, seed * 1_000_000 + step * 1000);
  const honest = scoreAdvantages(teacher, episodes);
  const advantages = options.permute ? permuted(honest, episodes, uniform) : honest;
  model.forwardBackward({ loss: 'importance_sampling', datums: episodes.map((episode, e) => policyRows(episode, advantages[e] ?? [])) });
  const { gradNorm } = model.optimStep({
    learningRate: Number(options.lr),
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-12,
    weightDecay: 0,
    gradClipNorm: 0,
  });
  const sampled = episodes.reduce((sum, { mask }) => sum + mask.reduce((inner, one) => inner + one, 0), 0);
  const entropy = -episodes.reduce((sum, { logprobs }) => sum + logprobs.reduce((inner, one) => inner + one, 0), 0) / sampled;
  const kl = -honest.flat().reduce((sum, gap) => sum + gap, 0) / sampled;
  const length = sampled / episodes.length;
  first ??= { entropy, length };
  console.log(
    `step ${step}  train solved ${solveRate(episodes).toFixed(3)}  kl/token ${kl.toFixed(3)}  entropy ×${(entropy / first.entropy).toFixed(2)} (${entropy.toFixed(3)})` +
      `  length ×${(length / first.length).toFixed(2)} (${length.toFixed(1)})  |g| ${gradNorm.toFixed(1)}`,
  );
}
const cpu = process.cpuUsage(cpuStart);
console.log(`student after ${heldOut(model.merged()).toFixed(3)}  (${((cpu.user + cpu.system) / 1e6).toFixed(1)} s of CPU for the steps)`);
