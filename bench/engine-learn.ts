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

export type LearnOptions = {
  readonly steps: number;
  readonly tasksPerStep: number;
  readonly seed: number;
  readonly learningRate: number;
  /** Deal the advantages out again at random: a control that must not learn. */
  readonly permute: boolean;
  /** Attempts at each held-out task, before and after. */
  readonly heldOutAttempts: number;
};
/** `entropy` is the mean −logprob of sampled tokens in nats, `length` the mean sampled tokens of an episode. */
export type LearnStep = {
  readonly solved: number;
  readonly kl: number;
  readonly entropy: number;
  readonly length: number;
  readonly gradNorm: number;
};
/** Solve rates on held-out tasks at temperature 1, and every step's measures (of its episodes, before its update). */
export type LearnReport = {
  readonly teacher: number;
  readonly before: number;
  readonly after: number;
  readonly steps: readonly LearnStep[];
};

const ATTEMPTS = 4;
const ADVANTAGE_CLIP = 5;
const NO_OTHER_ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 };

export const learn = (
  options: LearnOptions,
  onStep: (index: number, step: LearnStep, first: LearnStep) => void = () => {},
): LearnReport => {
  const { seed } = options;
  const teacher = weightsOf('teacher');
  const model = LoraModel.create(weightsOf('student'), { rank: 8, seed, trainAttn: true, trainMlp: true });
  const decoder = new Decoder({ cachedSequences: 160 });
  const uniform = uniformStream(seed);
  const { train, holdout } = quickstartSplits();
  const heldOut = (weights: DenseWeights): number => {
    const tasks = Array.from({ length: options.heldOutAttempts }, () => holdout).flat();
    return solveRate(playEpisodes(decoder, weights, tasks, 1_000_000 + seed * 10_000));
  };
  const nextTasks = taskStream(train, uniform);
  const before = heldOut(model.base);
  const steps: LearnStep[] = [];
  for (let index = 0; index < options.steps; index++) {
    const tasks = nextTasks(options.tasksPerStep).flatMap((task) => Array.from({ length: ATTEMPTS }, () => task));
    const episodes = playEpisodes(decoder, model.merged(), tasks, seed * 1_000_000 + index * 1000);
    const honest = scoreAdvantages(teacher, episodes);
    const advantages = options.permute ? permuted(honest, episodes, uniform) : honest;
    model.forwardBackward({ loss: 'importance_sampling', datums: episodes.map((episode, e) => policyRows(episode, advantages[e] ?? [])) });
    const { gradNorm } = model.optimStep({ learningRate: options.learningRate, ...NO_OTHER_ADAM });
    const step = measured(episodes, honest, gradNorm);
    steps.push(step);
    onStep(index, step, steps[0] ?? step);
  }
  return { teacher: heldOut(teacher), before, after: heldOut(model.merged()), steps };
};

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

/** Tasks in random order, all once before any twice. */
const taskStream = (tasks: readonly QuickTask[], uniform: () => number): ((count: number) => QuickTask[]) => {
  let order: QuickTask[] = [];
  return (count) => {
    while (order.length < count) order = [...order, ...shuffle(tasks, uniform)];
    return order.splice(0, count);
  };
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

/** The same numbers over all sampled tokens, at random places. */
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

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const measured = (episodes: readonly SimulatedEpisode[], advantages: readonly number[][], gradNorm: number): LearnStep => {
  const sampled = sum(episodes.flatMap(({ mask }) => mask));
  return {
    solved: solveRate(episodes),
    kl: -sum(advantages.flat()) / sampled,
    entropy: -sum(episodes.flatMap(({ logprobs }) => logprobs)) / sampled,
    length: sampled / episodes.length,
    gradNorm,
  };
};

const main = (): void => {
  const { values } = parseArgs({
    options: {
      steps: { type: 'string', default: '16' },
      tasks: { type: 'string', default: '32' },
      seed: { type: 'string', default: '1' },
      lr: { type: 'string', default: '3e-3' },
      permute: { type: 'boolean', default: false },
    },
  });
  const options = {
    steps: Number(values.steps),
    tasksPerStep: Number(values.tasks),
    seed: Number(values.seed),
    learningRate: Number(values.lr),
    permute: values.permute,
    heldOutAttempts: 8,
  };
  const start = process.cpuUsage();
  const report = learn(options, (index, { solved, kl, entropy, length, gradNorm }, first) => {
    const ratios = `entropy ×${(entropy / first.entropy).toFixed(2)} (${entropy.toFixed(3)})  length ×${(length / first.length).toFixed(2)} (${length.toFixed(1)})`;
    console.log(`step ${index}  solved ${solved.toFixed(3)}  kl/token ${kl.toFixed(3)}  ${ratios}  |g| ${gradNorm.toFixed(0)}`);
  });
  const cpu = process.cpuUsage(start);
  console.log(
    `held-out, temperature 1: teacher ${report.teacher.toFixed(3)}  before ${report.before.toFixed(3)}  after ${report.after.toFixed(3)}`,
  );
  console.log(`${((cpu.user + cpu.system) / 1e6).toFixed(1)} s of CPU`);
};

if (import.meta.main) main();
