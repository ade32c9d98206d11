import { expect, test, vi } from 'vitest';
import type { SamplerPath, StatePath } from '../../core/ids.ts';
import { deleteLeftovers } from './leftovers.ts';

test('a service with paths of its own, which our client refuses to address, ends nothing', async () => {
  const said = vi.spyOn(console, 'log').mockImplementation(() => {});
  const asked: string[] = [];
  const checkpoints = {
    list: () => Promise.reject(new Error('no such call')),
    unpublish: () => {
      throw new Error('odd path');
    },
    delete: async (path: string) => {
      asked.push(path);
      if (path === 'odd') throw new Error('odd path');
    },
  };
  await deleteLeftovers({ checkpoints }, { modelId: 'm', sampler: 'fine' as SamplerPath, state: 'odd' as StatePath });
  expect(asked).toEqual(['fine', 'odd']);
  expect(said.mock.calls).toEqual([['left with the service: odd (odd path)']]);
  said.mockRestore();
});
