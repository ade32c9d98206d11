import { ActiveRule } from './active-rule.ts';
import type { Call } from './call.ts';
import type { Plan } from './plan.ts';

type LossStatus = 404 | 410;

/** The plan in force, its counters, and what has been lost by it. All of it is in memory: a restarted process starts the plan over. */
export class FaultBook {
  rules: readonly ActiveRule[] = [];
  readonly #lost = new Map<string, LossStatus>();

  constructor(plan: Plan) {
    this.replace(plan);
  }

  /** Counters start over; what was lost is there again. */
  replace(plan: Plan): void {
    this.rules = plan.map((rule) => new ActiveRule(rule));
    this.#lost.clear();
  }

  /** From now on `id`, a model or a session, is unknown. */
  lose(id: string, status: LossStatus): void {
    this.#lost.set(id, status);
  }

  /** What a call names that was lost, or null. */
  lossOf({ session, model }: Call): { readonly what: string; readonly status: LossStatus } | null {
    for (const [kind, id] of [['session', session] as const, ['model', model] as const]) {
      const status = id === null ? undefined : this.#lost.get(id);
      if (status !== undefined) return { what: `${kind} '${id}'`, status };
    }
    return null;
  }
}
