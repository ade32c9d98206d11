/** What filled the slots of a batch, in the order of the slots: in which order they ended, or were tried again, must not show in any number. */
export function inSlotOrder<Filled extends { readonly slot: string }>(filled: readonly Filled[]): Filled[] {
  return filled.toSorted((a, b) => (a.slot < b.slot ? -1 : a.slot > b.slot ? 1 : 0));
}

/** A slot, the task it is for, and its place in the batch as a person reads it. */
export type Slot<Task> = { readonly id: string; readonly place: string; readonly task: Task };

/** The batch that a trial is of: its slot's prefix. Null for what is no trial's id. */
export function batchOf(trialId: string): string | null {
  return /^(.+)-\d{3,}-\d+(-r\d+)?$/.exec(trialId)?.[1] ?? null;
}

/** The batch of a step. */
export const batchOfStep = (trialPrefix: string, step: number) => `${trialPrefix}-s${String(step).padStart(4, '0')}`;

/** The step whose batch that is; null for one of an evaluation or a warm-up. */
export function stepOfBatch(batch: string): number | null {
  const digits = /-s(\d+)$/.exec(batch)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** The slots of a batch of tasks × attempts. Their ids start every trial id in them. */
export function slotsOf<Task>(prefix: string, tasks: readonly Task[], attempts: number): Slot<Task>[] {
  return tasks.flatMap((task, index) =>
    Array.from({ length: attempts }, (_, attempt) => {
      const place = `${String(index).padStart(3, '0')}-${attempt}`;
      return { id: `${prefix}-${place}`, place, task };
    }),
  );
}
