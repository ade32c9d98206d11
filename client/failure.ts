/** Why a run failed: the innermost failure has the words and the name; `type` is `ApplicationFailure.type` where there is one. */
export type Failure = { readonly type: string | null; readonly message: string };

/** A workflow that was cancelled from outside ends like a failed one, and did what a stop does. */
export const isCancel = ({ type }: Failure): boolean => type === 'CancelledFailure';

export function failureOf(error: Error): Failure {
  let innermost: Error = error;
  while (innermost.cause instanceof Error) innermost = innermost.cause;
  const type = 'type' in innermost && typeof innermost.type === 'string' ? innermost.type : innermost.name;
  return { type, message: innermost.message };
}
