import type { Command } from 'commander';
import { findAgent } from '../../core/run/agents.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { StoreDamaged } from '../../services/stores/version-index.ts';
import { StoreError } from '../../services/stores/version-refs.ts';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { addHarness, hashOf, neededVersion, readHarnessFile, storedNames } from '../harnesses.ts';
import { openHarnessStore } from '../input/agent.ts';
import { addedText, agentText, harnessTable } from '../view/harness-text.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean };

export function addHarnessCommands(program: Command): void {
  const about = 'agents of your own: documents that say which program plays, and what it is told';
  const harness = program.command('harness').description(about).helpCommand(false);
  addCommand(harness, 'add <name> <file>', 'keep a document (JSON, or TOML in a .toml file) as the next version of a name')
    .option('--alias <alias>', 'move this alias to it; "champion" is what the name alone means')
    .action(run<Options & { alias?: string }, [string, string]>(refusing(add)));
  addCommand(harness, 'list', 'the stored agents').action(run<Options, []>(refusing(list)));
  addCommand(harness, 'show <name[@ref]>', 'one agent: ref is a version (v3, 3) or an alias; without one as a run would take it').action(
    run<Options, [string]>(refusing(show)),
  );
  addCommand(harness, 'alias <name> <alias> <version>', 'point an alias at a version').action(
    run<Options, [string, string, string]>(refusing(alias)),
  );
}

async function add(console: Console, options: { alias?: string }, name: string, file: string): Promise<number> {
  const document = await readHarnessFile(file);
  const added = await addHarness(await openHarnessStore(PROJECT_ROOT), name, document, options.alias ?? null);
  console.result({ ...added, alias: options.alias ?? null });
  console.print(addedText(added, options.alias ?? null));
  return EXIT.ok;
}

async function list(console: Console): Promise<number> {
  const names = await storedNames(await openHarnessStore(PROJECT_ROOT));
  console.result(names);
  console.print(
    names.length === 0 ? `no agent is stored; \`${COMMAND} harness add NAME FILE\` keeps one` : harnessTable(names, console.colors),
  );
  return EXIT.ok;
}

async function show(console: Console, _options: Options, given: string): Promise<number> {
  const harnesses = await openHarnessStore(PROJECT_ROOT);
  const agent = await findAgent(given, (name, ref) => harnesses.load(name, ref));
  const isBuiltin = agent.ref === 'builtin';
  const aliases = isBuiltin ? [] : [...(await harnesses.versions.aliases(agent.name))].filter(([, version]) => `v${version}` === agent.ref);
  const shown = { ...agent, hash: hashOf(agent), aliases: aliases.map(([name]) => name) };
  console.result(shown);
  console.print(agentText(shown));
  return EXIT.ok;
}

async function alias(console: Console, _options: Options, name: string, alias: string, version: string): Promise<number> {
  const number = neededVersion(version);
  await (await openHarnessStore(PROJECT_ROOT)).versions.setAlias(name, alias, number);
  console.result({ name, alias, version: number });
  console.print(`${name}@${alias} is now v${number}`);
  return EXIT.ok;
}

/** What the store refuses a person can mend: a name, a version, a file. */
function refusing<Args extends unknown[]>(action: (...args: Args) => Promise<number>): (...args: Args) => Promise<number> {
  return (...args) =>
    action(...args).catch((error: Error) => {
      const isTheirs = error instanceof StoreError || error instanceof StoreDamaged || error.name === 'AgentRefused';
      throw isTheirs ? new CliError(error.message) : error;
    });
}
