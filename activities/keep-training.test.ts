import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import { createKeepTrainingActivities } from './keep-training.ts';
import { MemoryService } from './testing/memory-service.ts';
import { Project } from './testing/project.ts';
import { inActivity, scoredBatch } from './testing/training.ts';
import { createTrainingActivities } from './training.ts';

it('keeps the newest session of a training alive, that of a rebuilt one too, until it is cancelled', async () => {
  await using project = await Project.make();
  const { ref: run } = await project.resolve();
  const service = new MemoryService();
  const deps = { ...project, models: service.access() };
  const training = createTrainingActivities(deps);
  const opened = await inActivity('open', 1, () => training.openTraining({ run }));

  const keeping = new MockActivityEnvironment();
  const { keepTraining } = createKeepTrainingActivities({ ...deps, lookEveryMs: 10 });
  const kept = keeping.run(keepTraining, { run, generation: 1 });
  await expect.poll(() => [...service.joined]).toEqual([['session-1', 1]]);

  service.loseAll({ statesToo: false });
  const trials = await scoredBatch(project.blobs, 'first', 1);
  const order = { run, step: 1, sampler: 's', training: opened, trials };
  const { training: rebuilt } = await inActivity('step', 1, () => training.trainBatch(order));
  expect(rebuilt.at).toMatchObject({ generation: 2, sessionId: 'session-2' });
  await expect.poll(() => Object.fromEntries(service.joined)).toEqual({ 'session-1': 0, 'session-2': 1 });

  keeping.cancel();
  await expect(kept).rejects.toThrow();
  expect(Object.fromEntries(service.joined)).toEqual({ 'session-1': 0, 'session-2': 0 });
});
