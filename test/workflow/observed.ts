import { trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { notingIn } from './runs.ts';

/** Activities that write down what matters of the order in which they are called. */
export function observed() {
  const calls: string[] = [];
  const trials: string[] = [];
  const fake = fakeActivities();
  const noting = notingIn(calls);
  const activities: Partial<AllActivities> = {
    runTrial: async (spec) => {
      trials.push(`${spec.trialId} ${spec.task.id} ${spec.who} ${spec.model.version} ${spec.maxTurns}`);
      return trialFor(spec);
    },
    saveState: noting(({ name }) => `state ${name}`, fake.saveState),
    saveSampler: noting(({ name }) => `sampler ${name}`, fake.saveSampler),
    trainBatch: noting(({ step, sampler }) => `train ${step} on ${sampler}`, fake.trainBatch),
    closeEvaluation: noting(({ label, model }) => `evaluated ${label} of ${model.version}`, fake.closeEvaluation),
    compareTeacher: noting(({ teacher, before }) => `compared ${teacher.source} ${before.source}`, fake.compareTeacher),
    drawInterimTasks: noting(() => 'drew', fake.drawInterimTasks),
  };
  return { calls, trials, activities };
}
