import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { sendable } from './failure-guard.ts';
import { guarded } from './payload-guard.ts';

/** Checks what an activity returns, and cuts what it fails with: refused by the SDK or the server, the same work would be done again and again. */
export const guardResults: ActivityInterceptorsFactory = ({ info }) => ({
  inbound: {
    execute: async (input, next) => {
      try {
        return guarded(await next(input), { of: `activity ${info.activityType}`, direction: 'result' });
      } catch (error) {
        throw sendable(error);
      }
    },
  },
});
