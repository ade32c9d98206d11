import { type WorkflowInterceptorsFactory, workflowInfo } from '@temporalio/workflow';
import { fairnessKey } from '../core/run/fairness-key.ts';

/** The run's own id, in the run and in all that it starts. */
function runId(): string {
  const { root, workflowId } = workflowInfo();
  return root?.workflowId ?? workflowId;
}

/** Gives all that a run starts the run's own key, so that workers take turns between runs: a long queue of one does not hold up another. */
export const interceptors: WorkflowInterceptorsFactory = () => ({
  outbound: [
    {
      scheduleActivity: (input, next) => next({ ...input, options: shared(input.options) }),
      startChildWorkflowExecution: (input, next) => next({ ...input, options: shared(input.options) }),
    },
  ],
});

const shared = <Options extends { priority?: object }>(options: Options): Options => ({
  ...options,
  priority: { ...options.priority, fairnessKey: fairnessKey(runId()) },
});
