import { Context } from '@temporalio/activity';
import { type AllActivities, fakeActivities } from './fake-activities.ts';

/** The activities of many runs at once: each call is answered by those of its run. */
export function activitiesByRun(activitiesOf: (runId: string) => AllActivities | undefined): AllActivities {
  return new Proxy(fakeActivities(), {
    get: (_, activity: keyof AllActivities) => (input: never) => {
      const [run = ''] = Context.current().info.workflowExecution?.workflowId.split('.') ?? [];
      return activitiesOf(run)?.[activity](input);
    },
  });
}
