import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { KNOWN_VARIABLES } from '../services/settings/index.ts';

it('the page names every variable that a runner gets without being asked, and no other', () => {
  const page = readFileSync(join(import.meta.dirname, 'rollout-workers.md'), 'utf8');
  const [, table = ''] = page.split('| for ');
  const named = [...(table.split('\n\n')[0] ?? '').matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name]) => name);
  expect(named.sort()).toEqual(KNOWN_VARIABLES.filter((name) => name === name.toUpperCase()).sort());
});
