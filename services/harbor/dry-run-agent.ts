import type { AgentProgram } from '../../core/run/agent-program.ts';
import { type AgentWiring, agentConfig } from './agent-config.ts';
import { type AgentConfig, nopAgent } from './agents.ts';
import type { JobTemplate } from './job-template.ts';
import { sandboxMode } from './sandbox-mode.ts';

/** The exception of a dry run whose agent could not play (`probe_agent.py`). */
export const AGENT_CANNOT_PLAY = 'AgentCannotPlay';

/** A trial of our own small agent needs nothing but a shell. */
const NEEDS: Readonly<Record<AgentProgram['runtime'], readonly string[]>> = {
  turn: [],
  'terminus-2': ['tmux'],
  import: [],
  installed: [],
};

/**
 * What plays the dry-run trial of an agent: nothing but a look whether the agent could, so that a missing module, a wrong option or a
 * missing program is known before a model is asked. Sandboxes that are no process sandboxes install their programs themselves.
 */
export function dryRunAgent(program: AgentProgram, wiring: Omit<AgentWiring, 'apiBase'>, template: JobTemplate): AgentConfig {
  if (program.runtime === 'turn') return nopAgent;
  // A port that nobody listens on: the agent is made, and never runs.
  const agent = agentConfig(program, { ...wiring, apiBase: 'http://127.0.0.1:9/v1' });
  const needs = sandboxMode(template) === null ? [] : NEEDS[program.runtime];
  const env = agent.env === undefined ? {} : { env: agent.env };
  return { import_path: 'stillroom_harbor.probe_agent:ProbeAgent', kwargs: { agent, needs }, ...env };
}
