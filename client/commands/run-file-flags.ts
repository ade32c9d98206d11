import { type Command, Option } from 'commander';

/** Adds the flags that name a run's files; `start` cannot do without them. */
export function addRunFiles(command: Command, need: 'required' | 'optional'): Command {
  const file = (flags: string, description: string) => new Option(flags, description).makeOptionMandatory(need === 'required');
  return command
    .addOption(file('--config <file>', 'run config (TOML)'))
    .addOption(file('--tasks <file>', 'training tasks: a JSON array of task ids'))
    .addOption(file('--holdout <file>', 'held-out tasks: a JSON array of task ids'))
    .addOption(new Option('--backend <name>', "where sandboxes run; default: the config's").choices(['local', 'e2b']));
}
