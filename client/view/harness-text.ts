import type { FoundAgent } from '../../core/run/agent-program.ts';
import type { Colors } from '../console.ts';
import type { Added, StoredName } from '../harnesses.ts';
import { table } from './table.ts';
import { wrapped } from './wrap.ts';

const HEAD = ['name', 'versions', 'means', 'runtime', 'aliases'];

/** The stored agents, a line for each. */
export function harnessTable(names: readonly StoredName[], colors: Colors): string {
  const rows = names.map(({ name, versions, meant, runtime, aliases }) => [
    name,
    `${versions.length}`,
    `v${meant}`,
    runtime,
    Object.entries(aliases)
      .map(([alias, version]) => `${alias}=v${version}`)
      .join(' '),
  ]);
  return table(colors, HEAD, rows, HEAD.length);
}

/** What became of a document that was added. */
export function addedText({ name, version, isNew, meant, path }: Added, alias: string | null): string {
  const lines = [
    isNew ? `${name} v${version} is kept in ${path}` : `${name} v${version} already is this document: no version was made`,
    ...(alias === null ? [] : [`${name}@${alias} is now v${version}`]),
    ...(meant === version
      ? [`a run's agent "${name}" means v${version}`]
      : [`a run's agent "${name}" still means v${meant}, its champion; "${name}@v${version}" names this one`]),
  ];
  return lines.map((line) => wrapped(line, '  ')).join('\n');
}

/** An agent as a run would pin it. */
export function agentText(agent: FoundAgent & { readonly hash: string; readonly aliases: readonly string[] }): string {
  const { name, ref, runtime, kwargs, env, prompt, hash, aliases } = agent;
  const program = runtime === 'import' ? ` ${agent.importPath}` : runtime === 'installed' ? ` ${agent.agent}` : '';
  const model = runtime === 'installed' && agent.model !== undefined ? [`model    ${agent.model}`] : [];
  return [
    `agent    ${name}${ref === 'builtin' ? ', built in' : `@${ref}`}${aliases.length > 0 ? ` (${aliases.join(', ')})` : ''}`,
    `runtime  ${runtime}${program}`,
    `hash     ${hash}`,
    ...model,
    ...entries('kwargs', kwargs),
    ...entries('env', env),
    ...(prompt === undefined
      ? []
      : [
          'prompt',
          ...prompt
            .trimEnd()
            .split('\n')
            .map((line) => `  ${line}`),
        ]),
  ].join('\n');
}

function entries(title: string, values: Readonly<Record<string, unknown>>): string[] {
  const lines = Object.entries(values).map(([key, value]) => `  ${key} = ${JSON.stringify(value)}`);
  return lines.length === 0 ? [] : [title, ...lines];
}
