/** What is known of a run's cost before it starts. */
export type KnownCost = { readonly fullyPriced: boolean; readonly maxUsd: number | null };

/** True when something bounds what a run can spend: a price for every meter, or a cap. Unbounded spend always needs a person. */
export function isBounded({ fullyPriced, maxUsd }: KnownCost): boolean {
  return fullyPriced || maxUsd !== null;
}

/** Must a person say yes to the cost? `yes` answers in advance, where the spend is bounded. */
export function needsConfirmation(cost: KnownCost & { readonly yes: boolean }): boolean {
  return !(cost.yes && isBounded(cost));
}
