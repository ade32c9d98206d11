import { seedFromName } from '../../../core/random/seeded.ts';
import { drawTasks, interimEvalTasks, TaskDrawError } from '../../../core/training/task-sampler.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};
const count = (ids: readonly string[]) => Object.fromEntries([...Map.groupBy(ids, (id) => id)].map(([id, all]) => [id, all.length]));
const steps = (first: number, number: number) => Array.from({ length: number }, (_, i) => first + i);

type Batches = { task_ids: string[]; seed: string; batch: number; batches: number };
type BatchesExpected = { batch_size: number; divides_evenly: boolean; times_drawn: Record<string, number> };
/** Our generator draws other names than the recorder's; sizes, uniqueness, counts and whole epochs are compared. */
function batches(input: Batches, expected: BatchesExpected): Finding {
  const seed = BigInt(input.seed);
  const drawn = steps(0, input.batches).map((step) => drawTasks({ taskIds: input.task_ids, tasksPerBatch: input.batch, step, seed }));
  const all = drawn.flat();
  const epochs = steps(0, Math.floor(all.length / input.task_ids.length)).map((e) =>
    all.slice(e * input.task_ids.length, (e + 1) * input.task_ids.length).sort(),
  );
  const wanted = {
    sizes: drawn.map(() => expected.batch_size),
    repeats: [],
    epochs: epochs.map(() => [...input.task_ids].sort()),
    times_drawn: expected.divides_evenly ? expected.times_drawn : null,
  };
  return compare(wanted, {
    sizes: drawn.map((batch) => batch.length),
    repeats: drawn.filter((batch) => new Set(batch).size !== batch.length),
    epochs,
    times_drawn: expected.divides_evenly ? count(all) : null,
  });
}

type Resume = Batches & { batch_at_resume: number; completed_steps: number; further_steps: number };
function resume(input: Resume, expected: { same_continuation: boolean }): Finding {
  const draw = (tasksPerBatch: number) => (step: number) =>
    drawTasks({ taskIds: input.task_ids, tasksPerBatch, step, seed: BigInt(input.seed) });
  const whole = steps(0, input.completed_steps + input.further_steps).map(draw(input.batch));
  const after = steps(input.completed_steps, input.further_steps).map(draw(input.batch_at_resume));
  const same = difference(whole.slice(input.completed_steps), after) === null;
  return compare({ same_continuation: expected.same_continuation }, { same_continuation: same });
}

function interimEval(input: { task_ids: string[]; seed: string; eval_tasks: number }, expected: { count: number }): Finding {
  const draw = () => interimEvalTasks(input.task_ids, input.eval_tasks, BigInt(input.seed));
  const tasks = draw();
  const known = tasks.every((id) => input.task_ids.includes(id));
  const wanted = { count: expected.count, unique: expected.count, known: true, again: tasks };
  return compare(wanted, { count: tasks.length, unique: new Set(tasks).size, known, again: draw() });
}

function error(input: { task_ids: string[]; batch: number }, expected: unknown): Finding {
  try {
    return compare(expected, drawTasks({ taskIds: input.task_ids, tasksPerBatch: input.batch, step: 0, seed: 0n }));
  } catch (problem) {
    if (problem instanceof TaskDrawError) return compare(expected, { error: problem.code });
    throw problem;
  }
}

function seed(input: { name: string }, expected: unknown): Finding {
  return compare(expected, { seed: String(seedFromName(input.name)) });
}

export const taskSampler: FamilyAdapter = {
  family: 'task_sampler',
  kinds: { batches, resume, interim_eval: interimEval, error, seed },
};
