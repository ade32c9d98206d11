import { z } from 'zod';

/** Longest texts of a message, in characters. Every record of it travels with the run's status, which has a largest size. */
export const MAX_NAME_CHARS = 200;
export const MAX_REASON_CHARS = 2_000;

/**
 * Who decides, through which door, and why. `via` is what the sender claims (absent: a plain Temporal client).
 * `waitId` names the wait that is answered, so that a late answer cannot hit the next question.
 */
export const Decision = z.looseObject({
  by: z.string().trim().min(1, 'say who decides: by').max(MAX_NAME_CHARS),
  reason: z.string().max(MAX_REASON_CHARS).optional(),
  waitId: z.string().max(MAX_NAME_CHARS).optional(),
  via: z.enum(['cli', 'chat', 'webhook', 'temporal']).optional(),
});
export type Decision = z.infer<typeof Decision>;

export const SetBudget = Decision.extend({ maxUsd: z.number().positive() });
export type SetBudget = z.infer<typeof SetBudget>;

export const DecidePromotion = Decision.extend({ approve: z.boolean() });
export type DecidePromotion = z.infer<typeof DecidePromotion>;

/** Deletes checkpoints that are not needed, at once; how many of the last stay, where the config does not say or another number is meant. */
export const SweepCheckpoints = Decision.extend({ keepLast: z.number().int().min(1).optional() });
export type SweepCheckpoints = z.infer<typeof SweepCheckpoints>;

/** Everything a person can tell a run. */
export const MESSAGES = [
  'confirmCost',
  'declineCost',
  'setBudget',
  'continueAnyway',
  'decidePromotion',
  'pause',
  'resume',
  'stop',
] as const;
export type MessageName = (typeof MESSAGES)[number];

/** The form of each message; an answer that does not fit is refused with the reason. */
export const messageForm = (name: MessageName): z.ZodType<Decision> =>
  name === 'setBudget' ? SetBudget : name === 'decidePromotion' ? DecidePromotion : Decision;

/** One line of the run's decision book: applied decisions and signals that were refused. */
export type DecisionRecord = {
  readonly message: string;
  readonly by: string;
  readonly via: string;
  readonly reason: string | null;
  readonly at: string;
  readonly waitId: string | null;
  readonly applied: boolean;
  /** Why a signal was not applied. */
  readonly refusal: string | null;
  /** The answer itself where there is one, e.g. `approve` or `maxUsd`. */
  readonly answer: boolean | number | null;
};
