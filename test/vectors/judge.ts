import type { VectorCase, VectorFamily } from './vector-file.ts';

/** What an adapter says of one case: null when our code agrees, else how it differs. `refused`: our code rejected the input. */
export type Finding = null | { readonly difference: string; readonly refused?: boolean } | { readonly notApplicable: string };

/** Checks one case. Adapters rename and reshape; the arithmetic they compare is the product's. */
export type Check = (input: never, expected: never, family: VectorFamily, vector: VectorCase) => Finding | Promise<Finding>;

export type FamilyAdapter = {
  readonly family: string;
  /** For families of which there are several, named by their file: `family` is how their names begin. */
  readonly isPrefix?: boolean;
  /** One check per `input.kind`; families without kinds use `''`. */
  readonly kinds: Readonly<Record<string, Check>>;
};

export type Verdict =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed' | 'differs' | 'refused' | 'unknown_kind' | 'not_applicable'; readonly detail: string };

/** The adapter of a family, the one with its whole name first. */
export function adapterOf(adapters: readonly FamilyAdapter[], family: string): FamilyAdapter | undefined {
  const prefixed = (adapter: FamilyAdapter) => adapter.isPrefix && family.startsWith(adapter.family);
  return adapters.find((adapter) => !adapter.isPrefix && adapter.family === family) ?? adapters.find(prefixed);
}

/** One case against the adapter of its family. */
export async function judge(adapter: FamilyAdapter, family: VectorFamily, vector: VectorCase): Promise<Verdict> {
  const kind = (vector.input as { kind?: string }).kind ?? '';
  const check = adapter.kinds[kind];
  if (!check) return { outcome: 'unknown_kind', detail: kind };
  let finding: Finding;
  try {
    finding = await check(vector.input as never, vector.expected as never, family, vector);
  } catch (error) {
    finding = { difference: `our code failed: ${(error as Error).stack ?? error}` };
  }
  if (finding === null) return { outcome: 'passed' };
  if ('notApplicable' in finding) return { outcome: 'not_applicable', detail: finding.notApplicable };
  if (vector.oddity) return { outcome: 'differs', detail: `oddity ${vector.oddity}` };
  if (vector.lenient && finding.refused) return { outcome: 'refused', detail: finding.difference };
  return { outcome: 'failed', detail: finding.difference };
}
