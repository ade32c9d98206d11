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
  readonly kind: 'not_built' | 'wrong_runtime';

  constructor(kind: AgentRefused['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The agents that come with the product, by name; each is the runtime of documents that name it. */
const BUILTIN: Readonly<Record<string, AgentProgram>> = {
  turn: { importPath: 'stillroom_harbor.turn_agent:TurnAgent', kwargs: { stop_word: 'done' } },
};

/**
 * Finds the agent that `given` means: the literal name of a built-in one, or `name@ref` of a stored one, which `load` gets (`ref` null:
 * the champion, else the newest). Nothing behind the `@` is no reference. @throws AgentRefused, and whatever `load` throws
 */
export async function findAgent(given: string, load: (name: string, ref: string | null) => Promise<StoredHarness>): Promise<FoundAgent> {
  const at = given.indexOf('@');
  const [name, ref] = at < 0 ? [given, ''] : [given.slice(0, at), given.slice(at + 1)];
  if (ref === '') {
    if (name === 'pi') throw new AgentRefused('not_built', `agent pi (terminus-2) is not built yet; built in are: ${builtins()}`);
    const program = Object.hasOwn(BUILTIN, name) ? BUILTIN[name] : undefined;
    if (program) return { name, ref: 'builtin', ...program };
  }
  const { version, document } = await load(name, ref === '' ? null : ref);
  const runtime = Object.hasOwn(BUILTIN, document.runtime) ? BUILTIN[document.runtime] : undefined;
  if (!runtime)
    throw new AgentRefused(
      'wrong_runtime',
      `agent ${name} v${version} runs on ${JSON.stringify(document.runtime)}; runtimes here: ${builtins()}`,
    );
  return { name, ref: `v${version}`, importPath: runtime.importPath, kwargs: { ...runtime.kwargs, ...document.kwargs } };
}

const builtins = () => Object.keys(BUILTIN).join(', ');
