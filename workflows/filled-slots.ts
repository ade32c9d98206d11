import type { BlobRef } from '../core/ids.ts';
import { addPaid, NOTHING_PAID, type Paid } from '../core/measures/usage.ts';
import { type KeptTrials, MOST_IN_A_LIST, NO_KEPT_TRIALS, type PlayedSlot } from '../core/run/kept-trials.ts';
import { keepingTrials } from './proxies.ts';

/** What an unfinished batch hands on, to its next execution or to its parent: a reference to each list of trials, and a mark for each slot. */
export type CarriedSlots = {
  readonly kept: KeptTrials;
  /** A character for each slot of the batch, in order: `1` where it is filled. */
  readonly filled: string;
  readonly executed: number;
  readonly passed: number;
} & SlotCost;

/** What filled slots took, and what is still to be paid for them: their share of training. */
export type SlotCost = { readonly paid: Paid; readonly heldUsd: number };

export function costOf({ trial, score }: PlayedSlot): SlotCost {
  return { paid: score ? addPaid(trial, score) : addPaid(trial), heldUsd: score?.trainUsd ?? 0 };
}

/** The slots of a batch that are filled. What filled them goes to the blob store before it travels anywhere. */
export class FilledSlots {
  private readonly run: BlobRef;
  private readonly places: ReadonlyMap<string, number>;
  private readonly marks: boolean[];
  private kept: KeptTrials;
  private fresh: PlayedSlot[] = [];
  executed: number;
  passed: number;
  paid: Paid;
  private heldUsd: number;

  /** `slots` are the ids of the batch's slots, in the same order in each execution. */
  constructor(run: BlobRef, slots: readonly string[], carried?: CarriedSlots) {
    this.run = run;
    this.places = new Map(slots.map((slot, place) => [slot, place]));
    this.marks = slots.map((_, place) => carried?.filled[place] === '1');
    this.kept = carried?.kept ?? NO_KEPT_TRIALS;
    this.executed = carried?.executed ?? 0;
    this.passed = carried?.passed ?? 0;
    this.paid = carried?.paid ?? NOTHING_PAID;
    this.heldUsd = carried?.heldUsd ?? 0;
  }

  get count(): number {
    return this.kept.count + this.fresh.length;
  }

  has(slot: string): boolean {
    const place = this.places.get(slot);
    return place !== undefined && (this.marks[place] ?? false);
  }

  add(played: PlayedSlot): void {
    const place = this.places.get(played.slot);
    if (place === undefined || this.marks[place]) throw new Error(`slot ${played.slot} is none of the batch's, or is filled already`);
    this.marks[place] = true;
    this.fresh.push(played);
    if (played.trial.executed) this.executed++;
    if (played.trial.passed) this.passed++;
    const { paid, heldUsd } = costOf(played);
    this.paid = addPaid(this.paid, paid);
    this.heldUsd += heldUsd;
  }

  /** Puts what is new into the blob store. Returns all that the batch's trials are from now on. */
  async keep(): Promise<CarriedSlots> {
    while (this.fresh.length > 0) {
      const trials = this.fresh.slice(0, MOST_IN_A_LIST);
      const list = await keepingTrials().keepTrials({ run: this.run, trials });
      this.kept = { lists: [...this.kept.lists, list], count: this.kept.count + trials.length };
      this.fresh = this.fresh.slice(trials.length);
    }
    const filled = this.marks.map((mark) => (mark ? '1' : '0')).join('');
    return { kept: this.kept, filled, executed: this.executed, passed: this.passed, paid: this.paid, heldUsd: this.heldUsd };
  }
}
