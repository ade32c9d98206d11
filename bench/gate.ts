/**
 * How often the gate promotes students that did not improve, and how often it sees a true gain: simulated students, the product's own
 * decision. `npm run bench -- gate [STUDENTS]`: students per row, 2,000 unless said (half of it for the gains). Exit 1 when more than
 * 5 % of the students that did not improve are promoted.
 */
import { type Scenario, type SimulatedGate, simulateGate } from '../core/gate/testing/simulated-students.ts';
import { seededRandom, seedFromName } from '../core/random/seeded.ts';
import { tableOf } from './support/table.ts';

const CONFIDENCE = 0.95;
const MOST_FALSE = 0.05;
const ATTEMPTS = 3;
const SPREADS = [
  { name: 'alike, Beta(4, 4)', a: 4, b: 4 },
  { name: 'even, Beta(1, 1)', a: 1, b: 1 },
  { name: 'easy or hard, Beta(0.3, 0.3)', a: 0.3, b: 0.3 },
] as const;
const TEACHER_LEADS = [0.35, 0.5, 0.7];
const GAIN = 0.15;

export async function main(): Promise<void> {
  const students = Number(process.argv[2] ?? 2000);
  if (!Number.isInteger(students) || students < 2)
    throw new Error(`students per row must be a whole number of at least 2, got ${students}`);
  const worst = noGain(students);
  trueGain(Math.ceil(students / 2));
  if (worst <= MOST_FALSE) return;
  console.error(`gate: ${percent(worst)} of students that did not improve were promoted; at most ${percent(MOST_FALSE)} may be`);
  process.exitCode = 1;
}

/** Prints the first table; returns the largest share promoted with evidence. */
function noGain(students: number): number {
  const table = tableOf(['task difficulties', 'teacher', 'rates alone promote', `confidence ${CONFIDENCE} promotes`, 'interval without 0']);
  let worst = 0;
  for (const { name, ...difficulty } of SPREADS) {
    for (const teacherLead of TEACHER_LEADS) {
      const scenario = { tasks: 17, attempts: ATTEMPTS, gain: 0, difficulty, teacherLead };
      const gates = simulate(`no gain, ${name}, ${teacherLead}`, students, scenario);
      const [byRates, byEvidence, decided] = countsOf(gates);
      worst = Math.max(worst, byEvidence / students);
      // Every spread has mean 0.5.
      const teacher = percent(0.5 + teacherLead / 2);
      table.push([name, teacher, ...[byRates, byEvidence, decided].map((count) => share(count, students))]);
    }
  }
  console.log(`Students that did not improve: ${students} a row, 17 tasks × ${ATTEMPTS} attempts, true solve rate 50 % before and after`);
  console.log(table.toString());
  return worst;
}

function trueGain(students: number): void {
  const table = tableOf(['task difficulties', 'tasks', 'rates alone promote', `confidence ${CONFIDENCE} promotes`]);
  for (const { name, ...difficulty } of SPREADS) {
    for (const tasks of [17, 48, 100]) {
      const gates = simulate(`gain, ${name}, ${tasks}`, students, { tasks, attempts: ATTEMPTS, gain: GAIN, difficulty, teacherLead: 0.5 });
      const [byRates, byEvidence] = countsOf(gates);
      table.push([name, tasks, share(byRates, students), share(byEvidence, students)]);
    }
  }
  console.log(`Students with a true gain of ${GAIN * 100} points on every task: ${students} a row, ${ATTEMPTS} attempts a task`);
  console.log(table.toString());
}

function simulate(name: string, students: number, scenario: Scenario): SimulatedGate[] {
  const random = seededRandom(seedFromName(name));
  return Array.from({ length: students }, () => simulateGate(scenario, CONFIDENCE, random));
}

function countsOf(gates: readonly SimulatedGate[]): [byRates: number, byEvidence: number, decided: number] {
  const count = (holds: (gate: SimulatedGate) => boolean) => gates.filter(holds).length;
  return [count(({ byRates }) => byRates), count(({ byEvidence }) => byEvidence), count(({ side }) => side !== 'zero')];
}

/** A count as a share with its 95 % interval (Wilson): it stays above 0 where nothing was counted. */
function share(count: number, of: number): string {
  const z = 1.96;
  const p = count / of;
  const scale = 1 + z ** 2 / of;
  const middle = (p + z ** 2 / (2 * of)) / scale;
  const half = (z / scale) * Math.sqrt((p * (1 - p)) / of + z ** 2 / (4 * of ** 2));
  return `${count} = ${percent(p)} (${percent(Math.max(0, middle - half))} to ${percent(middle + half)})`;
}

function percent(rate: number): string {
  return `${(100 * rate).toFixed(1)} %`;
}
