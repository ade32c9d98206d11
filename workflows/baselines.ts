import type { EvalResult } from '../core/run/results.ts';
import { evaluateHoldout } from './evaluations.ts';
import { briefActivities } from './proxies.ts';
import type { Run } from './run.ts';
import { evaluationOf } from './run-state.ts';

/** Takes the baselines that are imported and measures the others, but for a teacher that is put off until after training. */
export async function openBaselines(run: Run): Promise<void> {
  const { plan, importedBaselines: imported } = run.pinned;
  if (imported.teacher) take(run, imported.teacher);
  else if (!plan.deferBaselines) await evaluateHoldout(run, 'teacher', () => plan.teacher);
  if (imported.student) take(run, imported.student);
  else await evaluateHoldout(run, 'student-before', () => plan.student);
  if (isMeasured(run, 'teacher')) return askUnlessAhead(run);
  run.note('the teacher is measured after training (eval.defer_baselines): whether it is better than the student is not known before');
}

/** Measures the teacher that was put off. */
export async function closeBaselines(run: Run): Promise<void> {
  if (!isMeasured(run, 'teacher')) await evaluateHoldout(run, 'teacher', () => run.pinned.plan.teacher);
}

const isMeasured = ({ facts }: Run, label: EvalResult['label']) => facts.evaluations.some((done) => done.label === label);

function take(run: Run, evaluation: EvalResult): void {
  run.facts.evaluations = [...run.facts.evaluations, evaluation];
  run.board.refresh();
}

/** A teacher that is not shown to be better than the student has nothing to teach: a person decides. */
async function askUnlessAhead(run: Run): Promise<void> {
  const [teacher, before] = [evaluationOf(run.facts, 'teacher'), evaluationOf(run.facts, 'student-before')];
  const lead = await briefActivities().compareTeacher({ run: run.pinned.ref, teacher, before });
  if (lead !== null && lead.interval.low > 0) return;
  const found =
    lead === null
      ? whyUnknown(teacher, before)
      : `its solve rate is ${lead.mean.toFixed(3)} above the student's, but the ${lead.confidence * 100} % interval is ${lead.interval.low.toFixed(3)} to ${lead.interval.high.toFixed(3)} over ${lead.n} tasks (more held-out tasks or a larger gate.k tell more)`;
  const finding = `The teacher is not better than the student beyond noise: ${found}.`;
  const question = `${finding} Train anyway?`;
  run.note(finding);
  await run.desk.ask('teacher', question, [...run.commands('continueAnyway'), ...run.commands('stop')]);
  await run.breathe();
}

function whyUnknown(teacher: EvalResult, before: EvalResult): string {
  const silent = [teacher, before].filter(({ source, perTask }) => source === 'imported' && perTask.length === 0);
  if (silent.length === 0) return 'no task was measured on both sides';
  const rates = [teacher, before].map(({ label, passed, executed }) => `${label} ${passed}/${executed}`).join(', ');
  return `${rates}, but the imported report of ${silent.map(({ label }) => label).join(' and ')} has no per_task to compare task by task`;
}
