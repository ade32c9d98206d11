import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BlobRef } from '../core/ids.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { Crash, type Death, dyingAt, MemoryObjects, pausingAt } from './testing/crashing-store.ts';
import { MemoryService } from './testing/memory-service.ts';
import { CONFIG, failureOf, Project } from './testing/project.ts';
import { inActivity, threeSteps, trainAll, type Wish } from './testing/training.ts';
import { createTrainingActivities } from './training.ts';

let project: Project;
let wishes: readonly Wish[];
let run: BlobRef;
beforeAll(async () => {
  project = await Project.make();
  run = (await project.resolve({ config: CONFIG.replace('steps = 3', 'steps = 3\nnum_substeps = 2') })).ref;
  wishes = await threeSteps(project.blobs, 'shared');
});
afterAll(() => project[Symbol.asyncDispose]());

/** What happens around the nth activity attempt of all. */
type Trouble = {
  readonly death?: Death;
  /** Just before it, the service loses every model. */
  readonly loss?: boolean;
  /** And every state it has saved. */
  readonly statesToo?: boolean;
};

/** Trains while processes die and the service loses models. */
async function trained(troubles: readonly Trouble[], service = new MemoryService()) {
  const journal = new MemoryObjects();
  let attempts = 0;
  const result = await trainAll(run, wishes, async (activityId, work) => {
    for (let attempt = 1; ; attempt++) {
      const { death, loss, statesToo } = troubles[attempts++] ?? {};
      if (loss) service.loseAll({ statesToo: statesToo ?? false });
      try {
        return await inActivity(activityId, attempt, () => work(activitiesOn(dyingAt(journal, death), service)));
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
      }
    }
  });
  return { ...result, lineages: result.paths.map((path) => service.saved.get(path)), tokens: service.tokens, samples: service.samples };
}

function activitiesOn(objects: ObjectStore, service: MemoryService) {
  return createTrainingActivities({ records: project.records, blobs: project.blobs, objects, models: service.access() });
}

const death = fc.record({ write: fc.nat({ max: 24 }), afterIt: fc.boolean() });

it('wherever processes die, each batch is in the weights once, in order; books and service agree but for calls that are listed as lost', async () => {
  const calm = await trained([]);
  expect(calm.notices).toEqual([]);
  expect(calm.lineages.map((lineage) => lineage?.length)).toEqual([0, 2, 4, 6, 6]);
  expect(calm.trainedTokens).toBe(calm.tokens);
  expect(calm).toMatchObject({ samples: 24, sampledTokens: 24, lostSamples: 0 });
  await fc.assert(
    fc.asyncProperty(fc.array(death, { minLength: 1, maxLength: 12 }), async (deaths) => {
      const shaken = await trained(deaths.map((death) => ({ death })));
      expectSame(shaken, calm);
      // A call of which nobody knows whether it was taken is booked as if it were.
      expect(shaken.tokens).toBeGreaterThanOrEqual(shaken.trainedTokens);
      expect(shaken.tokens).toBeLessThanOrEqual(shaken.trainedTokens + shaken.lostTokens);
      expect(shaken.meteredTokens).toBe(shaken.trainedTokens + shaken.lostTokens);
      expect(shaken.samples).toBeGreaterThanOrEqual(shaken.sampledTokens);
      expect(shaken.samples).toBeLessThanOrEqual(shaken.sampledTokens + shaken.lostSamples);
      expect(shaken.samples).toBeLessThanOrEqual(24);
    }),
    { numRuns: 60 },
  );
});

it('whenever the service loses models, and states too, what is trained in the end is the same', async () => {
  const calm = await trained([]);
  const trouble = fc.record({ loss: fc.boolean(), statesToo: fc.boolean() });
  const withDeath = fc.record({ loss: fc.boolean(), statesToo: fc.boolean(), death });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(trouble, withDeath), { minLength: 1, maxLength: 12 }), async (troubles) => {
      const shaken = await trained(troubles);
      expectSame(shaken, calm);
      expect(shaken.tokens).toBeLessThanOrEqual(shaken.trainedTokens + shaken.lostTokens);
    }),
    { numRuns: 60 },
  );
});

function expectSame(shaken: Awaited<ReturnType<typeof trained>>, calm: typeof shaken): void {
  expect(shaken.lineages).toEqual(calm.lineages);
  expect(shaken.losses).toEqual(calm.losses);
  expect(shaken.gradNorms).toEqual(calm.gradNorms);
  expect(shaken.training.updates).toBe(6);
}

it('an attempt that stood still while another one did its work writes nothing more, and trains nothing that is kept', async () => {
  const calm = await trained([]);
  const zombies: (string | null)[] = [];
  for (const after of [false, true])
    for (let at = 0; at < 30; at++) {
      const [service, journal] = [new MemoryService(), new MemoryObjects()];
      let zombie: Promise<string | null> = Promise.resolve(null);
      const shaken = await trainAll(run, wishes, async (activityId, work) => {
        if (activityId !== 'wish-3') return inActivity(activityId, 1, () => work(activitiesOn(journal, service)));
        const [paused, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const slowly = pausingAt(journal, at, after, paused.resolve, goOn.promise);
        zombie = inActivity(activityId, 1, () => work(activitiesOn(slowly, service))).then(
          () => null,
          (error: Error) => error.name,
        );
        if ((await Promise.race([paused.promise, zombie])) === null)
          return inActivity(activityId, 1, () => work(activitiesOn(journal, service)));
        const result = await inActivity(activityId, 2, () => work(activitiesOn(journal, service)));
        goOn.resolve();
        zombies.push(await zombie);
        return result;
      });
      const lineages = shaken.paths.map((path) => service.saved.get(path));
      expectSame({ ...shaken, lineages, tokens: service.tokens, samples: service.samples }, calm);
    }
  // Only the one that had written everything may still answer.
  expect(zombies.filter((name) => name === 'StaleAttempt').length).toBeGreaterThan(20);
  expect(zombies.filter((name) => name !== 'StaleAttempt')).toEqual([null]);
});

it('a model that shows other losses than the lost one is not trained, also not by a later attempt', async () => {
  const [service, journal] = [new MemoryService(), new MemoryObjects()];
  let attempts = 0;
  const failing = trainAll(run, wishes, async (activityId, work) => {
    const doing = () => inActivity(activityId, ++attempts, () => work(activitiesOn(journal, service)));
    if (activityId !== 'wish-3') return doing();
    service.loseAll({ statesToo: false });
    service.loadsWrongly = true;
    const modelsBefore = service.models.size;
    const failure = await failureOf(doing());
    expect(failure).toMatchObject({ type: 'RebuildDiffers', nonRetryable: true });
    expect(failure.message).toMatch(
      /^training was rebuilt from tinker:.*weights\/step-0001, but the model is another one: the loss of the probe/,
    );
    const rebuilt = [...service.models.values()].slice(modelsBefore);
    expect(rebuilt.map(({ lineage }) => lineage.length)).toEqual([1]);
    service.loadsWrongly = false;
    return doing();
  });
  const result = await failing;
  expect(result.losses).toEqual((await trained([])).losses);
  expect(result.training.at.generation).toBe(3);
});
