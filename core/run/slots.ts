/** What filled the slots of a batch, in the order of the slots: in which order they ended, or were tried again, must not show in any number. */
export function inSlotOrder<Filled extends { readonly slot: string }>(filled: readonly Filled[]): Filled[] {
  return filled.toSorted((a, b) => (a.slot < b.slot ? -1 : a.slot > b.slot ? 1 : 0));
}

/** A slot, the task it is for, and its place in the batch as a person reads it. */
export type Slot<Task> = { readonly id: string; readonly place: string; readonly task: Task };

/** The slots of a batch of tasks × attempts. Their ids start every trial id in them. */
export function slotsOf<Task>(prefix: string, tasks: readonly Task[], attempts: number): Slot<Task>[] {
  return tasks.flatMap((task, index) =>
    Array.from({ length: attempts }, (_, attempt) => {
      const place = `${String(index).padStart(3, '0')}-${attempt}`;
      return { id: `${prefix}-${place}`, place, task };
    }),
  );
}
