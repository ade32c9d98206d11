import { uniformStream } from '../engine/random.ts';
import type { Call } from './call.ts';
import type { FaultOf } from './fault-schemas.ts';
import { fitsPattern } from './pattern.ts';
import type { Rule } from './plan.ts';

/** Numbers in [0, 1), the same for the same rule and the same turn. */
export type Draws = () => number;

/** Turns of a rule that have draws of their own. */
const TURNS = 2 ** 20;

/** A rule at work: it counts what matches and says when its fault happens. The same requests in the same order give the same faults. */
export class ActiveRule {
  readonly rule: Rule;
  /** The turn at which each future was hit, null when it was spared. */
  readonly #turns = new Map<string, number | null>();
  readonly #holds = new Map<string, { polls: number; readonly sinceMs: number }>();
  #matched = 0;
  #fired = 0;

  constructor(rule: Rule) {
    this.rule = rule;
  }

  /** The rule, how many requests matched it, and in how many its fault happened. */
  get report(): Rule & { readonly matched: number; readonly fired: number } {
    return { ...this.rule, matched: this.#matched, fired: this.#fired };
  }

  matches({ path, type }: Call): boolean {
    return fitsPattern(this.rule.on, path) && (this.rule.for === undefined || this.rule.for === type);
  }

  /** Counts a match; null when it is spared. */
  next(): Draws | null {
    const turn = this.#nextTurn();
    return turn === null ? null : this.#draws(turn);
  }

  /** The same, decided once for a future: however often its result is asked for, it is the same. */
  nextOf(requestId: string): Draws | null {
    let turn = this.#turns.get(requestId);
    if (turn === undefined) {
      turn = this.#nextTurn();
      this.#turns.set(requestId, turn);
    }
    return turn === null ? null : this.#draws(turn);
  }

  /** Whether a future that was hit stays pending at this poll; the first poll starts the time. */
  isHeldBack(requestId: string, { polls, ms }: FaultOf<'pending'>): boolean {
    if (this.nextOf(requestId) === null) return false;
    const hold = this.#holds.get(requestId) ?? { polls: 0, sinceMs: performance.now() };
    this.#holds.set(requestId, hold);
    hold.polls += 1;
    return polls === undefined ? performance.now() - hold.sinceMs < (ms ?? 0) : hold.polls <= polls;
  }

  #nextTurn(): number | null {
    const { nth, times, probability } = this.rule;
    this.#matched += 1;
    if (this.#matched < nth || (times !== 'always' && this.#fired >= times)) return null;
    if (probability !== undefined && this.#stream(this.#matched)() >= probability) return null;
    this.#fired += 1;
    return this.#matched;
  }

  /** Past the number that decided whether the fault happens. */
  #draws(turn: number): Draws {
    const draws = this.#stream(turn);
    draws();
    return draws;
  }

  #stream(turn: number): Draws {
    return uniformStream(this.rule.seed * TURNS + (turn % TURNS));
  }
}
