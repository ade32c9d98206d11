import type { WorkflowInterceptorsFactory } from '@temporalio/workflow';
import { sendable } from './failure-guard.ts';
import { guarded } from './payload-guard.ts';

const all = (args: readonly unknown[], of: string): unknown[] => args.map((arg) => guarded(arg, { of, direction: 'input' }));

async function result(value: Promise<unknown>, of: string): Promise<unknown> {
  try {
    return guarded(await value, { of, direction: 'result' });
  } catch (error) {
    throw sendable(error);
  }
}

/** Checks all that a workflow sends and answers. What cannot be sent fails the workflow by name; thrown later, it would stop its task for ever. */
export const interceptors: WorkflowInterceptorsFactory = () => ({
  inbound: [
    {
      execute: (input, next) => result(next(input), 'the workflow'),
      handleQuery: (input, next) => result(next(input), `query ${input.queryName}`),
      handleUpdate: (input, next) => result(next(input), `update ${input.name}`),
    },
  ],
  outbound: [
    {
      scheduleActivity: (input, next) => next({ ...input, args: all(input.args, `activity ${input.activityType}`) }),
      startChildWorkflowExecution: (input, next) => {
        const of = `child ${input.workflowType} ${input.options.workflowId ?? ''}`.trimEnd();
        return next({ ...input, options: { ...input.options, args: all(input.options.args, of) } });
      },
      continueAsNew: (input, next) => next({ ...input, args: all(input.args, `${input.options.workflowType}, continued as new`) }),
    },
  ],
});
