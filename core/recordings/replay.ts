import { type AnsweredCall, isAnswered, type PaidCall, standingAs } from './paid-call.ts';

/**
 * Where a call stands in its attempt, and what an earlier attempt recorded for it: its answer, or that the service has it and waits to be paid.
 */
export type Turn = {
  readonly index: number;
  readonly answered: number;
  readonly recorded: AnsweredCall | null;
  readonly standing: PaidCall | null;
};

/**
 * Matches the calls of an attempt with those of earlier ones. As long as each call was made before, with the same key and after no more
 * answers, its recorded answer is given, once; the first that was not ends the replay for good. Calls that were in flight together may come
 * in another order. A call that was made before without an answer that can be used is made again in its place, and ends nothing.
 */
export class Replay {
  private readonly earlier: readonly PaidCall[];
  private readonly byKey: Map<string, PaidCall[]>;
  private readonly given = new Set<PaidCall>();
  private going = true;
  private answered = 0;
  private next = 0;

  constructor(earlier: readonly PaidCall[]) {
    this.earlier = earlier;
    this.byKey = Map.groupBy(earlier, (call) => call.key);
  }

  /** Answers of earlier attempts are still to be had. */
  get hasMore(): boolean {
    return this.going && this.earlier.some((call) => isUsable(call) && !this.given.has(call));
  }

  /** To be called when a call is about to be made, in the order in which they are. */
  take(key: string): Turn {
    const call = this.going ? this.match(key) : null;
    if (call === null) this.going = false;
    else this.given.add(call);
    const index = call?.index ?? this.next;
    this.next = Math.max(this.next, index + 1);
    const recorded = call !== null && isUsable(call) ? call : null;
    const standing = call !== null && standingAs(call) !== null ? call : null;
    return { index, answered: this.answered, recorded, standing };
  }

  /** To be called when a call was answered, from the book or by the service. */
  settle(): void {
    this.answered++;
  }

  private match(key: string): PaidCall | null {
    const open = (this.byKey.get(key) ?? []).filter((call) => !this.given.has(call) && call.answered <= this.answered);
    return open.toSorted((a, b) => worth(b) - worth(a) || a.index - b.index || b.place - a.place)[0] ?? null;
  }
}

/** An answer first, then one that can still be had. */
const worth = (call: PaidCall): number => (isUsable(call) ? 2 : standingAs(call) === null ? 0 : 1);

const isUsable = (call: PaidCall): call is AnsweredCall => isAnswered(call) && call.outcome.usable;
