/** `npm run check`: format, lint, types, arrows, workflow bundle and Python syntax, one line each; exit 1 when one of them finds something. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { inspectBundle, sizeText } from './bundle.ts';
import { violationsUnder } from './layers.ts';

/** `output` is what is wrong, or beside `ok` a remark of one line. */
type Result = { readonly ok: boolean; readonly output: string };

const root = path.resolve(import.meta.dirname, '..', '..');
const tool = (...parts: string[]) => path.join(root, 'node_modules', ...parts);

function run(command: string, args: readonly string[]): Result {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  const ok = status === 0;
  return { ok, output: ok ? '' : (error?.message ?? `${stdout}${stderr}`.trim()) };
}

function arrows(): Result {
  const found = violationsUnder(root);
  return {
    ok: found.length === 0,
    output: found.map(({ file, line, specifier, rule }) => `${file}:${line} '${specifier}': ${rule}`).join('\n'),
  };
}

/** What really gets into workflow code, and how large it is. */
async function workflowBundle(): Promise<Result> {
  const report = await inspectBundle(root);
  const found = report.impurities.map(({ chain, rule }) => `${chain.join(' → ')}: ${rule}`);
  return found.length === 0 ? { ok: true, output: sizeText(report) } : { ok: false, output: found.join('\n') };
}

/** Compiles the Python half in memory. The private Python is used when set-up made it, else any that is on PATH. */
function pythonSyntax(): Result {
  const own = path.join(root, '.stillroom', 'python', 'bin', 'python');
  const program = 'import pathlib; [compile(p.read_bytes(), str(p), "exec") for p in sorted(pathlib.Path("harbor_plugin").rglob("*.py"))]';
  return run(existsSync(own) ? own : 'python3', ['-c', program]);
}

const CHECKS: readonly (readonly [name: string, check: () => Result | Promise<Result>])[] = [
  ['format and lint', () => run(process.execPath, [tool('@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '.'])],
  ['types', () => run(process.execPath, [tool('typescript', 'bin', 'tsc'), '-p', '.'])],
  ['arrows between rooms', arrows],
  ['workflow bundle', workflowBundle],
  ['Python syntax', pythonSyntax],
];

for (const [name, check] of CHECKS) {
  const { ok, output } = await check();
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}${ok && output !== '' ? `: ${output}` : ''}`);
  if (!ok) {
    console.log(output.replace(/^/gm, '  '));
    process.exitCode = 1;
  }
}
