/** What a JSON file may hold as an agent's option. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** What an agent is told besides its model. */
type Told = {
  /** Options of the agent itself. Stillroom's own (address, model, temperature, budgets) are never among them. */
  readonly kwargs: Readonly<Record<string, Json>>;
  /** Variables of the agent's commands in the sandbox, and of harbor's own agents while they are set up. */
  readonly env: Readonly<Record<string, string>>;
  /** What the agent is told before or around its task, in the form that its runtime takes. */
  readonly prompt?: string;
};

/**
 * What plays a trial: our small turn agent, harbor's terminus-2, a class of the user's own, or one of the agents that harbor installs
 * into the sandbox. Text of kwargs and env of the last two may hold the placeholders `${STILLROOM_API_BASE}`, `${STILLROOM_MODEL}` and
 * `${STILLROOM_GATEWAY_KEY}`; the key is only filled in where the agent runs, never in a file.
 */
export type AgentProgram = Told &
  (
    | { readonly runtime: 'turn' }
    | { readonly runtime: 'terminus-2' }
    | {
        readonly runtime: 'import';
        /** `module.path:Class`. */
        readonly importPath: string;
      }
    | {
        readonly runtime: 'installed';
        /** harbor's name of it, e.g. `mini-swe-agent`. */
        readonly agent: string;
        /** The model's name as this agent wants it, with `${STILLROOM_MODEL}` in it; `openai/${STILLROOM_MODEL}` if absent. */
        readonly model?: string;
      }
  );

/** An agent as it was found: `ref` is the stored version (`vN`), or `builtin`. */
export type FoundAgent = AgentProgram & { readonly name: string; readonly ref: string };

/** The agent as a run pinned it; `hash` is of the program. */
export type PinnedAgent = FoundAgent & { readonly hash: string };

/** The program alone, without the name it goes by. */
function programOf(agent: AgentProgram): AgentProgram {
  const { kwargs, env, prompt } = agent;
  const told = { kwargs, env, ...(prompt === undefined ? {} : { prompt }) };
  switch (agent.runtime) {
    case 'import':
      return { runtime: agent.runtime, importPath: agent.importPath, ...told };
    case 'installed':
      return { runtime: agent.runtime, agent: agent.agent, ...(agent.model === undefined ? {} : { model: agent.model }), ...told };
    default:
      return { runtime: agent.runtime, ...told };
  }
}

/** The program as text to hash: the same for the same program, whatever it is called and however its document orders its fields. */
export const programText = (agent: AgentProgram): string => JSON.stringify(sorted(programOf(agent)));

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
