import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { MeterTokens } from '../core/measures/meters.ts';
import type { Usage } from '../core/measures/usage.ts';
import type { TrialSummary } from '../core/run/trial.ts';

/** Activities whose result says what they took of the services themselves. Others only pass such results on. */
const PAID = ['checkModels', 'runTrial', 'scoreEpisode', 'trainBatch', 'trainWarmup', 'saveSampler', 'saveState'];

/** Measures the work of a worker for its metrics: `stillroom_trials_running`, `stillroom_trials` by how they ended, `stillroom_tokens` by meter. */
export const workMetrics: ActivityInterceptorsFactory = ({ info: { activityType }, metricMeter }) => {
  const running = metricMeter.createUpDownCounter?.('stillroom_trials_running', 'trials', 'Trials that run now');
  const trials = metricMeter.createCounter('stillroom_trials', 'trials', 'Trials that ended');
  const tokens = metricMeter.createCounter('stillroom_tokens', 'tokens', 'Billed tokens');
  if (!PAID.includes(activityType)) return {};
  const isTrial = activityType === 'runTrial';
  return {
    inbound: {
      execute: async (input, next) => {
        if (isTrial) running?.add(1);
        try {
          const result = await next(input);
          for (const [meter, count] of Object.entries(metersOf(result))) tokens.add(count, { meter });
          if (isTrial) trials.add(1, { ended: endOf(result as TrialSummary) });
          return result;
        } finally {
          if (isTrial) running?.add(-1);
        }
      },
    },
  };
};

/** Work that could not go on may answer without meters. */
function metersOf(result: unknown): MeterTokens {
  const { meters, usage } = (result ?? {}) as { readonly meters?: MeterTokens; readonly usage?: Usage };
  return meters ?? usage?.meters ?? {};
}

const endOf = ({ executed, passed }: TrialSummary) => (!executed ? 'infra-failed' : passed ? 'passed' : 'failed');
