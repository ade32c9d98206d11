import { afterEach, expect, test, vi } from 'vitest';
import { createSessionBody } from './session-options.ts';

afterEach(() => vi.unstubAllEnvs());

const body = (options = {}) => JSON.parse(createSessionBody(options, '9.9'));

test('nothing set: only what the protocol requires', () => {
  vi.stubEnv('TINKER_TAGS', '');
  vi.stubEnv('TINKER_PROJECT_ID', '');
  expect(body()).toEqual({ tags: [], user_metadata: {}, sdk_version: '9.9', type: 'create_session' });
});

test('variables', () => {
  vi.stubEnv('TINKER_TAGS', 'a, b,,');
  vi.stubEnv('TINKER_PROJECT_ID', 'p');
  expect(body()).toMatchObject({ tags: ['a', 'b'], project_id: 'p' });
});

test('options come before variables', () => {
  vi.stubEnv('TINKER_TAGS', 'a');
  vi.stubEnv('TINKER_PROJECT_ID', 'p');
  const options = { tags: [], userMetadata: { k: 'v' }, projectId: 'q', displayName: 'd' };
  expect(body(options)).toMatchObject({ tags: [], user_metadata: { k: 'v' }, project_id: 'q', display_name: 'd' });
});
