import { z } from 'zod';
import type { AgentProgram } from './agent-program.ts';
import { kwargsProblems } from './harness-kwargs.ts';
import { secretProblems } from './harness-secrets.ts';
import { isInstalledAgent, notInstalledAgent } from './installed-agents.ts';

const told = {
  kwargs: z.record(z.string(), z.json()).default({}),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable'), z.string()).default({}),
  prompt: z.string().min(1).optional(),
};

const Runs = z.discriminatedUnion('runtime', [
  z.strictObject({ runtime: z.literal('turn'), ...told }),
  z.strictObject({ runtime: z.literal(['terminus-2', 'pi']), ...told }),
  z.strictObject({
    runtime: z.literal('import'),
    import_path: z.string().regex(/^\w+(\.\w+)*:\w+$/, 'must look like module.path:Class'),
    ...told,
  }),
  z.strictObject({
    runtime: z.literal('installed'),
    agent: z.string().refine(isInstalledAgent, { error: ({ input }) => notInstalledAgent(String(input)) }),
    model: z.string().min(1).optional(),
    ...told,
  }),
]);

/** The runtimes that a document may name; `pi` is another word for `terminus-2`. */
export const RUNTIMES = ['turn', 'terminus-2', 'import', 'installed'] as const;

/** A description of an agent as a person writes it: which program runs it, and what that is told. Nothing in it is a secret. */
export const HarnessDocument = Runs.superRefine((document, context) => {
  for (const { path, message } of [...kwargsProblems(document), ...secretProblems(document)])
    context.addIssue({ code: 'custom', path: [...path], message });
});
export type HarnessDocument = z.infer<typeof Runs>;

/** A document of a runtime that is not here: another version of the product may have stored it. */
export type ForeignHarness = { readonly runtime: string; readonly foreign: true };
export type StoredHarness = HarnessDocument | ForeignHarness;

/** What a store may hold: a document, or one that only its runtime is known of. */
export const StoredHarness: z.ZodType<StoredHarness> = z.looseObject({ runtime: z.string().min(1) }).transform((document, context) => {
  if (!(RUNTIMES as readonly string[]).concat('pi').includes(document.runtime)) return { runtime: document.runtime, foreign: true };
  const read = HarnessDocument.safeParse(document);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues) context.addIssue({ code: 'custom', path: [...path], message });
  return z.NEVER;
});

/** Whether a stored document is of a runtime that is here. */
export const isRuntime = (document: StoredHarness): document is HarnessDocument => !('foreign' in document);

/** What a document says is to be run. */
export function programIn(document: HarnessDocument): AgentProgram {
  const { kwargs, env, prompt } = document;
  const told = { kwargs: kwargs as AgentProgram['kwargs'], env, ...(prompt === undefined ? {} : { prompt }) };
  switch (document.runtime) {
    case 'turn':
      return { runtime: 'turn', ...told };
    case 'import':
      return { runtime: 'import', importPath: document.import_path, ...told };
    case 'installed':
      return {
        runtime: 'installed',
        agent: document.agent,
        ...(document.model === undefined ? {} : { model: document.model }),
        ...told,
      };
    default:
      return { runtime: 'terminus-2', ...told };
  }
}
