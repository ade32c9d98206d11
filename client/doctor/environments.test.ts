import { expect, test } from 'vitest';
import { engineFinding, environmentFinding, harborFinding } from './environments.ts';
import { isBroken, look, missing, works } from './finding.ts';

const report = (over: object) => ({ name: 'e2b', checked: true, reason: null, extra: 'e2b', missing: [], ...over });
const engine = { client: '28.2.2', engine: '28.2.2', compose: '2.30.1' };

test.each([
  ['nothing is missing', {}, 'works', null],
  ['a package is missing', { missing: ['e2b'] }, 'missing', /^pip install 'harbor\[e2b\]' into harbor's Python$/],
  ['a key is missing as well', { missing: ['e2b'], reason: 'needs E2B_API_KEY' }, 'missing', /pip install .*; needs E2B_API_KEY$/],
  ['only a key is missing', { reason: 'needs E2B_API_KEY' }, 'missing', /^needs E2B_API_KEY$/],
  ['harbor has no check', { checked: false }, 'unknown', /dry-run trial/],
])('an environment where %s', (_, over, state, remedy) => {
  const seen = environmentFinding(report(over));
  expect(seen.state).toBe(state);
  if (remedy === null) expect(seen.remedy).toBeNull();
  else expect(seen.remedy).toMatch(remedy);
});

test.each([
  ['docker', engine, null, 'works', /engine 28\.2\.2, Compose 2\.30\.1/],
  ['docker', { ...engine, engine: null }, 'no daemon', 'missing', /but no engine answers.*DOCKER_HOST/],
  ['docker', { ...engine, compose: null }, null, 'missing', /docker-compose-plugin/],
  ['docker', { client: null, engine: null, compose: null }, 'not installed', 'missing', /no docker on the PATH/],
  ['podman', { ...engine, compose: '1.0.3' }, null, 'missing', /podman-compose 1\.0\.3 is too old/],
  ['podman', { ...engine, compose: '1.6.0' }, null, 'works', /Compose 1\.6\.0/],
  ['podman', { ...engine, compose: '1.6.0' }, 'its provider is not working', 'missing', /its provider is not working/],
] as const)('%s with %o', (kind, found, reason, state, words) => {
  const seen = engineFinding(kind, report({ name: kind, extra: null, reason }), found);
  expect(seen.state).toBe(state);
  expect(`${seen.told} → ${seen.remedy}`).toMatch(words);
});

test('another harbor than the one that is tested is named', () => {
  const harbor = { version: '0.25.0', python: '3.13.0', names: [], keys: { environment: [], verifier: [] }, environments: [] };
  expect(harborFinding(harbor)).toMatchObject({ state: 'works' });
  expect(harborFinding({ ...harbor, version: '0.26.1' })).toMatchObject({
    state: 'warning',
    told: expect.stringContaining('harbor 0.26.1'),
  });
});

test('what hangs or throws is a finding', async () => {
  expect(await look('deaf', 20, () => new Promise(() => {}))).toMatchObject({ state: 'missing', told: 'gave no answer within 0.02 s' });
  expect(await look('broken', 20, () => Promise.reject(new Error('no\nmore')))).toMatchObject({ state: 'missing', told: 'no' });
});

test('only what is needed decides', () => {
  const [fine, lacks] = [works('a', ''), missing('b', '', '')].map((seen) => ({ ...seen, part: 'here' as const }));
  expect(isBroken([{ ...fine, needed: true } as never, { ...lacks, needed: false } as never])).toBe(false);
  expect(isBroken([{ ...fine, needed: true } as never, { ...lacks, needed: true } as never])).toBe(true);
});
