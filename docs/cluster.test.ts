import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { appSettingsJsonSchema } from '../services/settings/app-settings.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/search-attributes.ts';

const PAGE = readFileSync(join(import.meta.dirname, 'cluster.md'), 'utf8');

type Json = { readonly properties?: Record<string, Json>; readonly default?: unknown };

it('the page has every setting of workers with its default', () => {
  const rows = PAGE.split('\n').filter((line) => line.startsWith('| `'));
  for (const [key, { default: fallback }] of Object.entries((appSettingsJsonSchema() as Json).properties?.workers?.properties ?? {})) {
    const [, keys = '', defaults = ''] = rows.find((row) => row.split('|')[1]?.includes(`\`${key}\``))?.split('|') ?? [];
    const place = [...keys.matchAll(/`(\w+)`/g)].findIndex(([, name]) => name === key);
    const listed = defaults.includes('[') ? [defaults] : defaults.split(',');
    expect([key, listed[place]?.replaceAll('`', '').trim()]).toEqual([key, fallback === undefined ? 'none' : told(fallback)]);
  }
});

const told = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

it('the command that prepares a namespace names every search attribute with its type', () => {
  const command = /search-attribute create .*?\n```/s.exec(PAGE)?.[0] ?? '';
  const named = [...command.matchAll(/--name (\w+) --type (\w+)/g)].map(([, name, type = '']) => [name, type.toUpperCase()]);
  expect(named.sort()).toEqual(
    Object.values(SEARCH_ATTRIBUTES)
      .map(({ name, type }) => [name, type])
      .sort(),
  );
});
