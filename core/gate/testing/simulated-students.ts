import type { SeededRandom } from '../../random/seeded.ts';
import { gateEvidence, type TaskRates } from '../evidence.ts';
import { decideGate, type GateInput } from '../gate.ts';

/** Students of known skill before a gate: what is true of them is chosen, what the gate sees is drawn. */
export type Scenario = {
  readonly tasks: number;
  /** Attempts at each task in each of the three evaluations (`gate.k`). */
  readonly attempts: number;
  /** The student's chance to solve a task before training is drawn from Beta(a, b), times 1 − `gain`. */
  readonly difficulty: { readonly a: number; readonly b: number };
  /** What training truly adds to the chance of every task; 0 for a student that did not improve. */
  readonly gain: number;
  /** Share of the untrained student's failures that the teacher solves, on every task. */
  readonly teacherLead: number;
};

export type SimulatedGate = {
  /** Promoted by the two rules on rates alone (`confidence` null). */
  readonly byRates: boolean;
  /** Promoted by the whole gate at the given confidence. */
  readonly byEvidence: boolean;
  /** Where the interval of after − before lies; `zero` when it touches or holds zero. */
  readonly side: 'below' | 'zero' | 'above';
};

/** Draws one student and its holdout and lets the product's own gate decide, with and without `confidence`. */
export function simulateGate(scenario: Scenario, confidence: number, random: SeededRandom): SimulatedGate {
  const tasks = Array.from({ length: scenario.tasks }, (_, i) => drawTask(scenario, `task-${i}`, random));
  const rule = { min_teacher_fraction: 0.7, require_no_regression: true };
  const evidence = gateEvidence(tasks, { confidence, teacherFraction: rule.min_teacher_fraction }).afterMinusBefore;
  if (!evidence) throw new Error('a scenario needs at least one task');
  // Every task has equally many attempts, so the rate over trials is the mean over tasks.
  const rate = (of: 'teacher' | 'before' | 'after') => tasks.reduce((sum, task) => sum + task[of], 0) / tasks.length;
  const rates = { teacher: rate('teacher'), before: rate('before'), after: rate('after') };
  const decide = (gate: GateInput['gate']) => decideGate({ ...rates, evidence, gate }).accepted;
  const { low, high } = evidence.interval;
  return {
    byRates: decide({ ...rule, confidence: null }),
    byEvidence: decide({ ...rule, confidence }),
    side: low > 0 ? 'above' : high < 0 ? 'below' : 'zero',
  };
}

type Measured = TaskRates & { readonly teacher: number; readonly before: number; readonly after: number };

function drawTask({ attempts, difficulty, gain, teacherLead }: Scenario, taskId: string, random: SeededRandom): Measured {
  const chance = (1 - gain) * beta(difficulty.a, difficulty.b, random);
  const solveRate = (p: number) => {
    let passed = 0;
    for (let attempt = 0; attempt < attempts; attempt++) if (uniform(random) < p) passed++;
    return passed / attempts;
  };
  return {
    taskId,
    teacher: solveRate(chance + teacherLead * (1 - chance)),
    before: solveRate(chance),
    after: solveRate(chance + gain),
  };
}

function uniform(random: SeededRandom): number {
  return random.below(2 ** 32) / 2 ** 32;
}

/** A draw from Beta(a, b). Source: Jöhnk (1964), by rejection; meant for a and b of about 1. */
function beta(a: number, b: number, random: SeededRandom): number {
  for (;;) {
    const x = uniform(random) ** (1 / a);
    const y = uniform(random) ** (1 / b);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}
