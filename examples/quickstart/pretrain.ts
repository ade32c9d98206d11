/**
 * Makes the quickstart's two models, from nothing but seeds:
 *
 *   node examples/quickstart/pretrain.ts teacher    trainer/weights/tiny-teacher.safetensors   careful demonstrations
 *   node examples/quickstart/pretrain.ts student    trainer/weights/tiny-student.safetensors   careful ones first, then sloppy ones
 *
 * Each takes a few minutes on one core and writes its file at the end.
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { adamStep, noMoments } from '../../trainer/engine/adam.ts';
import { TINY_SHAPE } from '../../trainer/engine/shape.ts';
import { lossPass } from '../../trainer/engine/training-pass.ts';
import type { DenseWeights, WeightedRows } from '../../trainer/engine/types.ts';
import { initialWeights, weightsToBytes } from '../../trainer/engine/weights.ts';
import type { QuickTask, Sloppiness, TaskKind, Turn } from './content.ts';
import { createRng, demonstrate, demonstrateSloppily, episodeText, pretrainingTasks, SLOPPINESS, TASK_KINDS } from './content.ts';

export type PretrainingRecipe = {
  readonly model: string;
  readonly seed: number;
  readonly steps: number;
  /** From this step on the demonstrations are sloppy. A student that never saw careful ones copies names badly, which distillation hardly repairs. */
  readonly sloppyFrom: number;
};

export const RECIPES = {
  teacher: { model: 'stillroom/tiny-teacher', seed: 11, steps: 500, sloppyFrom: 500 },
  student: { model: 'stillroom/tiny-student', seed: 12, steps: 650, sloppyFrom: 350 },
} as const satisfies Record<string, PretrainingRecipe>;

/** A model adds slips of its own to those it was shown (it blurs names), so it is shown fewer than it should make. */
const STUDENT_SLOPPINESS: Sloppiness = {
  ...SLOPPINESS,
  byKind: Object.fromEntries(TASK_KINDS.map((kind) => [kind, 0.85 * SLOPPINESS.byKind[kind]])) as Record<TaskKind, number>,
};

const EPISODES_PER_STEP = 48;
const PEAK_LEARNING_RATE = 4e-3;
/** Loss weight of what the assistant did not write: enough to learn names and digits by, too little to compete. */
const CONTEXT_WEIGHT = 0.05;
/** How many of the first losses are written into the file, for the test that trains them again. */
export const FINGERPRINT_STEPS = 12;

/** The first `steps` steps of a recipe (all of them by default) and the mean loss per weighted token of each. */
export const pretrain = (recipe: PretrainingRecipe, steps = recipe.steps, onStep: (step: number, loss: number) => void = () => {}) => {
  const start = initialWeights(TINY_SHAPE, recipe.seed);
  const values = start.values.slice();
  const moments = noMoments(values.length);
  const tasks = pretrainingTasks(recipe.seed);
  const rng = createRng(recipe.seed);
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    const episodes = Array.from({ length: EPISODES_PER_STEP }, () => {
      const task = tasks.next().value;
      return trainingRows(task, step < recipe.sloppyFrom ? demonstrate(task) : demonstrateSloppily(task, rng, STUDENT_SLOPPINESS));
    });
    const gradient = new Float32Array(values.length);
    // The engine keeps copies of weights by object identity, so every step is a new object.
    const weights: DenseWeights = { ...start, values: values.slice() };
    const { metrics } = lossPass(weights, { loss: 'cross_entropy', datums: meanWeighted(episodes) }, gradient, 'all');
    const learningRate = (PEAK_LEARNING_RATE * (1 + Math.cos((Math.PI * step) / recipe.steps))) / 2;
    adamStep(values, gradient, moments, { learningRate, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 1 });
    losses.push(metrics['loss:sum']);
    onStep(step, metrics['loss:sum']);
  }
  return { values, losses };
};

const trainingRows = (task: QuickTask, turns: readonly Turn[]): WeightedRows => {
  const { text, assistant } = episodeText(task, turns);
  const ids = Int32Array.from(text, (character) => character.charCodeAt(0)).subarray(0, TINY_SHAPE.context + 1);
  const weights = new Float32Array(ids.length - 1).fill(CONTEXT_WEIGHT);
  // Row i scores token i + 1.
  for (const [from, to] of assistant) weights.fill(1, from - 1, to - 1);
  return { tokens: ids.slice(0, -1), targets: ids.slice(1), weights };
};

/** Scales the weights of a batch to sum to 1, which makes the summed loss a mean. */
const meanWeighted = (episodes: readonly WeightedRows[]): WeightedRows[] => {
  const total = episodes.reduce((sum, { weights }) => weights.reduce((inner, weight) => inner + weight, sum), 0);
  return episodes.map((rows) => ({ ...rows, weights: rows.weights.map((weight) => weight / total) }));
};

const isRecipeName = (name: string | undefined): name is keyof typeof RECIPES => name !== undefined && Object.hasOwn(RECIPES, name);

const main = async (name: string | undefined): Promise<void> => {
  if (!isRecipeName(name)) throw new Error('usage: node examples/quickstart/pretrain.ts teacher|student');
  const recipe = RECIPES[name];
  const { values, losses } = pretrain(recipe, recipe.steps, (step, loss) => {
    if (step % 25 === 0 || step === recipe.steps - 1) console.log(`step ${step}  loss ${loss.toFixed(4)}`);
  });
  const metadata = { model: recipe.model, seed: String(recipe.seed), first_losses: JSON.stringify(losses.slice(0, FINGERPRINT_STEPS)) };
  const file = fileURLToPath(new URL(`../../trainer/weights/tiny-${name}.safetensors`, import.meta.url));
  await writeFile(file, weightsToBytes({ shape: TINY_SHAPE, values, metadata }));
  console.log(`wrote ${file}`);
};

if (import.meta.main) await main(process.argv[2]);
