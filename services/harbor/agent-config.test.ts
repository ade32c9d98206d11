import { describe, expect, it, test } from 'vitest';
import type { AgentProgram } from '../../core/run/agent-program.ts';
import { type AgentWiring, agentConfig } from './agent-config.ts';
import { dryRunAgent } from './dry-run-agent.ts';
import { parseJobTemplate } from './job-template.ts';

const WIRING: AgentWiring = {
  apiBase: 'http://127.0.0.1:1/t/a/v1',
  model: 'Qwen/Qwen3-8B',
  maxTurns: 50,
  temperature: 0.7,
  maxTokens: 2048,
  contextLimitTokens: 32_768,
  compaction: false,
};
const program = (over: Partial<AgentProgram> & Pick<AgentProgram, 'runtime'>) => ({ kwargs: {}, env: {}, ...over }) as AgentProgram;

test('the default agent has the settings of the run, and records no terminal', () => {
  const config = agentConfig(program({ runtime: 'terminus-2' }), WIRING);
  expect(config).toMatchObject({
    name: 'terminus-2',
    kwargs: {
      api_base: WIRING.apiBase,
      max_turns: 50,
      temperature: 0.7,
      enable_summarize: false,
      collect_rollout_details: true,
      record_terminal_session: false,
      llm_call_kwargs: { max_tokens: 2048 },
    },
  });
  expect(agentConfig(program({ runtime: 'terminus-2' }), { ...WIRING, compaction: true }).kwargs?.enable_summarize).toBe(true);
});

describe('a document’s own', () => {
  it('kwargs and variables come on top', () => {
    const config = agentConfig(program({ runtime: 'terminus-2', kwargs: { tmux_pane_width: 90 }, env: { LANG: 'C' } }), WIRING);
    expect(config).toMatchObject({ env: { LANG: 'C' }, kwargs: { tmux_pane_width: 90, max_turns: 50 } });
  });

  it.each([
    [program({ runtime: 'turn', prompt: 'Be brief.' }), 'system_prompt'],
    [program({ runtime: 'terminus-2', prompt: 'Be brief.' }), 'stillroom_prompt'],
    [program({ runtime: 'import', importPath: 'a:B', prompt: 'Be brief.' }), 'prompt'],
    [program({ runtime: 'installed', agent: 'aider', prompt: 'Be brief.' }), 'stillroom_prompt'],
  ])('prompt reaches the agent of %o as %s', (agent, kwarg) => {
    expect(agentConfig(agent, WIRING).kwargs?.[kwarg]).toBe('Be brief.');
  });

  it('class is told where its model is, and how to ask it', () => {
    const config = agentConfig(
      program({ runtime: 'import', importPath: 'a.b:C', kwargs: { deep: { url: [`\${STILLROOM_API_BASE}/x`] } } }),
      WIRING,
    );
    expect(config).toEqual({
      import_path: 'a.b:C',
      kwargs: {
        api_base: WIRING.apiBase,
        model: WIRING.model,
        max_turns: 50,
        temperature: 0.7,
        max_tokens: 2048,
        deep: { url: [`${WIRING.apiBase}/x`] },
      },
    });
  });

  it('placeholders are filled in, but for the key', () => {
    const env = { BASE: `\${STILLROOM_API_BASE}`, MODEL: `a/\${STILLROOM_MODEL}`, KEY: `\${STILLROOM_GATEWAY_KEY}` };
    const config = agentConfig(program({ runtime: 'installed', agent: 'mini-swe-agent', env }), WIRING);
    expect(config).toMatchObject({ name: 'mini-swe-agent', model_name: 'openai/Qwen/Qwen3-8B' });
    expect(config.env).toEqual({ BASE: WIRING.apiBase, MODEL: 'a/Qwen/Qwen3-8B', KEY: `\${STILLROOM_GATEWAY_KEY}` });
    const other = agentConfig(program({ runtime: 'installed', agent: 'aider', model: `hosted_vllm/\${STILLROOM_MODEL}` }), WIRING);
    expect(other.model_name).toBe('hosted_vllm/Qwen/Qwen3-8B');
  });
});

describe('the dry run', () => {
  const template = (environment: object) => parseJobTemplate(JSON.stringify({ environment, tasks: [{ path: 't' }] }), 'job.json');
  const process = template({ import_path: 'stillroom_harbor.environment:ProcessEnvironment' });

  it('of our own small agent is harbor’s nop', () => {
    expect(dryRunAgent(program({ runtime: 'turn' }), WIRING, process)).toEqual({ name: 'nop' });
  });

  it('looks for tmux where sandboxes have this machine’s programs, and nowhere else', () => {
    const needs = (environment: Parameters<typeof dryRunAgent>[2]) =>
      dryRunAgent(program({ runtime: 'terminus-2' }), WIRING, environment).kwargs?.needs;
    expect(needs(process)).toEqual(['tmux']);
    expect(needs(template({ type: 'docker' }))).toEqual([]);
  });
});
