import type { SamplerPath, StatePath } from '../../core/ids.ts';
import type { SavedPath } from '../../core/training/checkpoint-ledger.ts';
import { FakeService } from '../../core/training/testing/kept-run.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';

type Options = {
  /** The life that saves get. */
  readonly ttlMs: number | null;
  readonly canRenew?: boolean;
  /** The life of what has this name, instead. */
  readonly keepFor?: (name: string) => number | null;
};

/** Activities of a service whose checkpoints really expire, by the clock of the test's server. */
export function keptService(nowMs: () => Promise<number>, { ttlMs, canRenew = true, keepFor = () => ttlMs }: Options) {
  const fake = fakeActivities();
  const service = new FakeService();
  service.canRenew = canRenew;
  const saves: string[] = [];
  const renewals: SavedPath[] = [];
  let failing = 0;
  const named = (name: string) => [...service.expiry.keys()].filter((path) => path.endsWith(`/${name}`)).toSorted();
  const activities: Partial<AllActivities> = {
    saveState: async (order) => {
      saves.push(`state ${order.name}`);
      const saved = await fake.saveState(order);
      service.save(saved.path as StatePath, keepFor(order.name), await nowMs());
      return saved;
    },
    saveSampler: async (order) => {
      saves.push(`sampler ${order.name}`);
      const saved = await fake.saveSampler(order);
      service.save(saved.path as SamplerPath, keepFor(order.name), await nowMs());
      return saved;
    },
    tendCheckpoints: async (plan) => {
      renewals.push(...plan.renew.map(({ path }) => path));
      service.canDelete = plan.remove.length === 0 || failing-- <= 0;
      return service.tend(plan, await nowMs());
    },
    // Trials need the weights that they sample from.
    runTrial: async (spec) => {
      const atMs = await nowMs();
      if (spec.model.kind === 'sampler' && !service.has(spec.model.path, atMs)) throw new Error(`${spec.model.path} is gone`);
      return fake.runTrial(spec);
    },
  };
  return {
    activities,
    saves,
    renewals,
    /** When what has this name ends, sampler first. */
    endOf: (name: string) => named(name).map((path) => service.expiry.get(path)),
    /** What of this name is gone by now. */
    missing: async (name: string) => {
      const atMs = await nowMs();
      return named(name).filter((path) => !service.has(path, atMs));
    },
    /** The next so many calls that delete something delete nothing. */
    failDeletions: (calls: number) => {
      failing = calls;
    },
    paths: () => [...service.expiry.keys()],
  };
}
