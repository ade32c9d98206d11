/** The billed kinds of token, in the order every table shows them. */
export const METERS = [
  'student_prefill',
  'student_cached_prefill',
  'student_sample',
  'student_train',
  'teacher_prefill',
  'teacher_cached_prefill',
  'teacher_sample',
] as const;
export type Meter = (typeof METERS)[number];

/** Tokens by meter. A meter that is absent counted nothing. */
export type MeterTokens = Readonly<Partial<Record<Meter, number>>>;

export function addMeters(...parts: readonly MeterTokens[]): MeterTokens {
  const sum: Partial<Record<Meter, number>> = {};
  for (const part of parts) for (const meter of METERS) if (part[meter]) sum[meter] = (sum[meter] ?? 0) + part[meter];
  return sum;
}
