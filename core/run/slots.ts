/** What filled the slots of a batch, in the order of the slots: in which order they ended, or were tried again, must not show in any number. */
export function inSlotOrder<Filled extends { readonly slot: string }>(filled: readonly Filled[]): Filled[] {
  return filled.toSorted((a, b) => (a.slot < b.slot ? -1 : a.slot > b.slot ? 1 : 0));
}
