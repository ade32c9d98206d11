import { z } from 'zod';

/** Some writers put their numbers in quotes. */
const Count = z.union([
  z.int().min(0),
  z
    .string()
    .regex(/^[0-9]{1,15}$/)
    .transform(Number),
]);
const optional = <T extends z.ZodType>(schema: T) => schema.nullish();

/** The part of a CTRF test report (`verifier/ctrf.json`, written by the task's own tests) that grades a trial. */
const Report = z.object({
  results: z.object({
    summary: optional(
      z.object({
        passed: optional(Count),
        failed: optional(Count),
        skipped: optional(Count),
        pending: optional(Count),
        other: optional(Count),
      }),
    ),
    tests: optional(z.array(z.object({ status: z.string().optional() }))),
  }),
});
type Results = z.infer<typeof Report>['results'];

/** How a trial's tests went. A test is resolved when it passed or failed; skipped, pending and other ones say nothing. */
export type TestCounts = { readonly passed: number; readonly resolved: number; readonly unresolved: number };

/**
 * Reads a CTRF report. The list of tests counts; the summary where there is no list, where the list has no verdict, or where it was cut
 * short (it resolves fewer tests than the summary). Null for a report that is absent, not readable as a whole, or resolves no test.
 */
export function readTestReport(text: string | null): TestCounts | null {
  const results = text === null ? null : parsed(text);
  if (results === null) return null;
  const [listed, summed] = [fromList(results.tests), fromSummary(results.summary)];
  const counts = listed.resolved > 0 && listed.resolved >= summed.resolved ? listed : summed;
  return counts.resolved > 0 ? counts : null;
}

function parsed(text: string): Results | null {
  try {
    return Report.safeParse(JSON.parse(text)).data?.results ?? null;
  } catch {
    return null;
  }
}

function fromList(tests: Results['tests']): TestCounts {
  const statuses = (tests ?? []).map(({ status }) => status);
  const passed = statuses.filter((status) => status === 'passed').length;
  const failed = statuses.filter((status) => status === 'failed').length;
  return { passed, resolved: passed + failed, unresolved: statuses.length - passed - failed };
}

/** A summary without one of its two verdicts states nothing. */
function fromSummary(summary: Results['summary']): TestCounts {
  const { passed, failed, skipped, pending, other } = summary ?? {};
  if (passed == null || failed == null) return { passed: 0, resolved: 0, unresolved: 0 };
  return { passed, resolved: passed + failed, unresolved: (skipped ?? 0) + (pending ?? 0) + (other ?? 0) };
}
