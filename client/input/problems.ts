import type { TaskIdsProblem } from '../../core/run/task-ids.ts';
import { CliError } from '../errors.ts';

/** What kind of thing is wrong with what a run was to be started from; `message` names the option, the file and the field. */
export type Problem = {
  readonly kind:
    | 'config_unreadable'
    | 'config_invalid'
    | 'not_built'
    | `task_ids_${TaskIdsProblem['kind']}`
    | 'overlap'
    | 'template'
    | 'tasks'
    | 'baseline'
    | 'trajectories'
    | 'agent'
    | 'agent_name'
    | 'agent_unknown'
    | 'agent_version'
    | 'agent_runtime'
    | 'from'
    | 'run_dir'
    | 'unbounded_spend';
  readonly message: string;
};

/** An input that cannot be started, with everything that is wrong with it. */
export class InputRefused extends CliError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const told = problems.map(({ message }) => message);
    super(told.length === 1 ? told.join('') : `${told.length} things are wrong:\n${told.map((it) => `  ${it}`).join('\n')}`);
    this.problems = problems;
  }
}

/** Collects everything that is wrong with an input, so that a person mends it in one go. */
export class Problems {
  private readonly found: Problem[] = [];

  add(kind: Problem['kind'], ...messages: readonly string[]): void {
    this.found.push(...messages.map((message) => ({ kind, message })));
  }

  /** @throws InputRefused with all problems, when there are any. */
  throwIfAny(): void {
    if (this.found.length > 0) throw new InputRefused(this.found);
  }
}
