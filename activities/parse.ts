import { ApplicationFailure } from '@temporalio/activity';
import { z } from 'zod';

/** Input of an activity, checked at its door. A malformed one fails for good: trying again would not change it. */
export function parsed<T>(schema: z.ZodType<T>, input: unknown, activity: string): T {
  const result = schema.safeParse(input);
  if (!result.success) throw ApplicationFailure.nonRetryable(`${activity}: ${z.prettifyError(result.error)}`, 'BadActivityInput');
  return result.data;
}
