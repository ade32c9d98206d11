import type { AgentProgram, FoundAgent } from './agent-program.ts';
import { isRuntime, programIn, RUNTIMES, type StoredHarness } from './harness-document.ts';

/** A version of a stored agent. */
export type StoredAgent = { readonly version: number; readonly document: StoredHarness };

/** An agent that cannot be run; the message says what can. */
export class AgentRefused extends Error {
  override readonly name = 'AgentRefused';
  readonly kind: 'wrong_runtime' | 'no_version' | 'unknown';

  constructor(kind: AgentRefused['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The agents that come with the product, by name: `pi` is harbor's terminus-2, `turn` our small one. */
const BUILTIN: Readonly<Record<string, AgentProgram>> = {
  pi: { runtime: 'terminus-2', kwargs: {}, env: {} },
  turn: { runtime: 'turn', kwargs: { stop_word: 'done' }, env: {} },
};
/** The default agent by harbor's name. */
const HARBORS_NAME = 'terminus-2';

/** Whether a name is always that of an agent of the product: nothing can be stored under it. */
export const isBuiltin = (name: string): boolean => Object.hasOwn(BUILTIN, name);

/**
 * Finds the agent that `given` means: the literal name of a built-in one, or `name@ref` of a stored one, which `load` gets (`ref` null:
 * the champion, else the newest) or throws an error of kind `no_such_name`. Nothing behind the `@` is no reference.
 * @throws AgentRefused, and whatever `load` throws
 */
export async function findAgent(given: string, load: (name: string, ref: string | null) => Promise<StoredAgent>): Promise<FoundAgent> {
  const at = given.indexOf('@');
  const [name, ref] = at < 0 ? [given, ''] : [given.slice(0, at), given.slice(at + 1)];
  if (isBuiltin(name)) {
    if (ref === '') return { name, ref: 'builtin', ...(BUILTIN[name] as AgentProgram) };
    throw new AgentRefused('no_version', `agent ${name} has no version ${ref}: ${name} is always the built-in agent`);
  }
  const { version, document } = await load(name, ref === '' ? null : ref).catch((error) => {
    throw name === HARBORS_NAME && (error as { kind?: unknown }).kind === 'no_such_name' ? harborsName() : error;
  });
  if (!isRuntime(document))
    throw new AgentRefused(
      'wrong_runtime',
      `agent ${name} v${version} runs on ${JSON.stringify(document.runtime)}; runtimes here: ${RUNTIMES.join(', ')}`,
    );
  return { name, ref: `v${version}`, ...programIn(document) };
}

const harborsName = () =>
  new AgentRefused('unknown', `no agent is stored as ${HARBORS_NAME}; harbor's agent of that name is built in, as pi`);
