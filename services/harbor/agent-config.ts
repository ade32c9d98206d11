import type { AgentProgram, Json } from '../../core/run/agent-program.ts';
import { type AgentConfig, turnAgent } from './agents.ts';
import { type TerminusAgentOptions, terminusAgent } from './terminus-agent.ts';

/** What Stillroom tells every agent of a trial. */
export type AgentWiring = Omit<TerminusAgentOptions, 'collectRolloutDetails'>;

/** The kwarg that carries a prompt to harbor's own agents: the runner takes it out and gives it to the agent (`document_agents.py`). */
const PROMPT_KWARG = 'stillroom_prompt';
const DEFAULT_INSTALLED_MODEL = `openai/\${STILLROOM_MODEL}`;

/** An agent in harbor's words, for one trial. */
export function agentConfig(program: AgentProgram, wiring: AgentWiring): AgentConfig {
  const { apiBase, model, maxTurns, temperature, maxTokens } = wiring;
  switch (program.runtime) {
    case 'turn':
      return told(turnAgent({ apiBase, model, maxTurns, temperature, maxTokens }), program, 'system_prompt');
    case 'terminus-2':
      return told(terminusAgent({ ...wiring, collectRolloutDetails: true }), program, PROMPT_KWARG);
    case 'import': {
      const kwargs = { api_base: apiBase, model, max_turns: maxTurns, temperature, max_tokens: maxTokens };
      return told({ import_path: program.importPath, kwargs }, filledIn(program, wiring), 'prompt');
    }
    case 'installed': {
      const name = filled(program.model ?? DEFAULT_INSTALLED_MODEL, wiring);
      return told({ name: program.agent, model_name: name }, filledIn(program, wiring), PROMPT_KWARG);
    }
  }
}

/** The document's kwargs over ours: those that are ours alone were refused when it was read. */
function told(config: AgentConfig, { kwargs, env, prompt }: AgentProgram, promptKwarg: string): AgentConfig {
  const own = { ...config.kwargs, ...kwargs, ...(prompt === undefined ? {} : { [promptKwarg]: prompt }) };
  return { ...config, kwargs: own, ...(Object.keys(env).length > 0 ? { env } : {}) };
}

function filledIn<P extends AgentProgram>(program: P, wiring: AgentWiring): P {
  return { ...program, kwargs: filled(program.kwargs, wiring), env: filled(program.env, wiring) };
}

/** Puts address and model in place of their placeholders, in all text of a value; other `${…}` stay. */
function filled<T extends Json | undefined>(value: T, wiring: AgentWiring): T {
  if (typeof value === 'string')
    return value.replaceAll(`\${STILLROOM_API_BASE}`, () => wiring.apiBase).replaceAll(`\${STILLROOM_MODEL}`, () => wiring.model) as T;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => filled(item as Json, wiring)) as unknown as T;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner as Json, wiring)])) as unknown as T;
}
