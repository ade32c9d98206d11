import { z } from 'zod';

/** What harbor is told to run. */
export type AgentProgram = { readonly importPath: string; readonly kwargs: Readonly<Record<string, string | number | boolean>> };

/** An agent that a run can use. `ref` is the stored version (`vN`), or `builtin`. */
export type FoundAgent = AgentProgram & { readonly name: string; readonly ref: string };

/** A stored description of an agent: the program that runs it, and what that is told. */
export const HarnessDocument = z.strictObject({
  runtime: z.string().min(1),
  kwargs: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
});
export type HarnessDocument = z.infer<typeof HarnessDocument>;
export type StoredHarness = { readonly version: number; readonly document: HarnessDocument };

/** An agent that cannot be run; the message says what can. */
export class AgentRefused extends Error {
  override readonly name = 'AgentRefused';
  readonly kind: 'not_built' | 'wrong_runtime' | 'no_version';

  constructor(kind: AgentRefused['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The agents that come with the product, by name; each is the runtime of documents that name it. */
const BUILTIN: Readonly<Record<string, AgentProgram>> = {
  turn: { importPath: 'stillroom_harbor.turn_agent:TurnAgent', kwargs: { stop_word: 'done' } },
};

/** Never a stored one: the name of the default agent. */
const DEFAULT_AGENT = 'pi';
/** What the default agent is of harbor's; somebody may ask for it by that name, and may store one under it. */
const HARBORS_AGENT = 'terminus-2';

/**
 * Finds the agent that `given` means: the literal name of a built-in one, or `name@ref` of a stored one, which `load` gets (`ref` null:
 * the champion, else the newest) or throws an error of kind `no_such_name`. Nothing behind the `@` is no reference.
 * @throws AgentRefused, and whatever `load` throws
 */
export async function findAgent(given: string, load: (name: string, ref: string | null) => Promise<StoredHarness>): Promise<FoundAgent> {
  const at = given.indexOf('@');
  const [name, ref] = at < 0 ? [given, ''] : [given.slice(0, at), given.slice(at + 1)];
  if (ref === '') {
    const program = Object.hasOwn(BUILTIN, name) ? BUILTIN[name] : undefined;
    if (program) return { name, ref: 'builtin', ...program };
    if (name === DEFAULT_AGENT) throw notBuilt(name);
  }
  const { version, document } = await load(name, ref === '' ? null : ref).catch((error) => {
    throw (error as { kind?: unknown }).kind === 'no_such_name' ? (known(name, ref) ?? error) : error;
  });
  const runtime = Object.hasOwn(BUILTIN, document.runtime) ? BUILTIN[document.runtime] : undefined;
  if (!runtime)
    throw new AgentRefused(
      'wrong_runtime',
      `agent ${name} v${version} runs on ${JSON.stringify(document.runtime)}; runtimes here: ${builtins()}`,
    );
  return { name, ref: `v${version}`, importPath: runtime.importPath, kwargs: { ...runtime.kwargs, ...document.kwargs } };
}

/** What to say of a name that is known, though nothing is stored under it. */
function known(name: string, ref: string): AgentRefused | null {
  if (name === HARBORS_AGENT) return notBuilt(name);
  if (!Object.hasOwn(BUILTIN, name)) return null;
  return new AgentRefused('no_version', `agent ${name} has no version ${ref}: no version is stored, there is only the built-in ${name}`);
}

const notBuilt = (name: string) => new AgentRefused('not_built', `agent ${name} is not built yet; there is: ${builtins()}`);

const builtins = () => Object.keys(BUILTIN).join(', ');
