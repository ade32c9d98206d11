import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EXCEPTIONS, type ExceptionRow, harborPython } from '../services/harbor/index.ts';
import { UNLISTED } from '../services/harbor/outcome-table.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';

/** The page on outcomes against the table in the code, and the table against the exceptions that harbor knows by name. */

const PAGE = readFileSync(join(import.meta.dirname, 'outcomes.md'), 'utf8');

/** The rows below the table head that starts with these words: name, and what the code has of it. */
function rowsUnder(head: string): Record<string, ExceptionRow> {
  const rows = PAGE.slice(PAGE.indexOf(head)).split('\n').slice(2);
  const end = rows.findIndex((row) => !row.startsWith('|'));
  const listed = rows.slice(0, end).map((row) => {
    const [name = '', fault, reward, retry, stop = ''] = row
      .split('|')
      .slice(1)
      .map((cell) => cell.trim().replaceAll('`', ''));
    return [name, { fault, rewardCounts: reward === 'counts', retry, stop: stop === '—' ? null : stop }];
  });
  return Object.fromEntries(listed);
}

it('the page has every exception of the table, and each as it is', () => {
  expect(rowsUnder('| exception ')).toEqual(EXCEPTIONS);
  expect(rowsUnder('| phase reached ')).toEqual(UNLISTED);
});

it('every exception in the table is explained', () => {
  for (const name of Object.keys(EXCEPTIONS)) expect(PAGE).toMatch(new RegExp(`^\\| \`${name}\` .*\\| \\S[^|]+ \\|$`, 'm'));
});

/** The source is read as text: importing harbor takes seconds. */
const READ_POLICIES = `
import ast, importlib.util, json, pathlib
root = pathlib.Path(importlib.util.find_spec("harbor").submodule_search_locations[0])
tree = ast.parse((root / "models/trial/error_policy.py").read_text())
groups = next(n for n in ast.walk(tree) if isinstance(n, ast.AnnAssign) and getattr(n.target, "id", "") == "_POLICY_GROUPS")
print(json.dumps([name.value for value in groups.value.values for name in value.elts]))
`;

it('the table has every exception that harbor has a policy for', async () => {
  const python = await harborPython(PROJECT_ROOT);
  const known = JSON.parse(execFileSync(python, ['-c', READ_POLICIES], { encoding: 'utf8' })) as string[];
  expect(known.length).toBeGreaterThan(40);
  expect(known.filter((name) => !Object.hasOwn(EXCEPTIONS, name))).toEqual([]);
});
