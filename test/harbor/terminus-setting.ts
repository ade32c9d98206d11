import { execFileSync } from 'node:child_process';
import type { TrialId } from '../../core/ids.ts';
import type { AgentProgram } from '../../core/run/agent-program.ts';
import {
  type ChatRenderer,
  type Gateway,
  type GatewaySession,
  startGateway,
  type TokenSampler,
  type TrialOptions,
} from '../../services/gateway/index.ts';
import { agentConfig, HarborRunner, type RunTrialOptions, type TerminusAgentOptions, type TrialRun } from '../../services/harbor/index.ts';
import { Setting } from './setting.ts';

/** terminus-2 works in a tmux of the sandbox, which is this machine's. */
export const TMUX_IS_HERE = hasTmux();

export const NO_TMUX = 'tmux is not on this machine: nothing but its absence can be tested with terminus-2. Install the package "tmux".';

export type Play = {
  readonly sampler: TokenSampler;
  readonly renderer: ChatRenderer;
  readonly agent?: Partial<TerminusAgentOptions>;
  /** What a harness document asks for besides. */
  readonly document?: AgentProgram;
  readonly gateway?: Partial<TrialOptions>;
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly options?: Partial<RunTrialOptions>;
  readonly agentMs?: number;
};

/** The harbor of a `Setting`, with terminus-2 and a real gateway in front of the model. */
export class TerminusSetting implements AsyncDisposable {
  readonly setting: Setting;
  readonly gateway: Gateway;
  readonly runner: HarborRunner;
  /** What the runner said on stderr. */
  readonly log: readonly string[];
  /** The keys of all trials so far. */
  readonly keys: string[] = [];
  #count = 0;

  private constructor(setting: Setting, gateway: Gateway, runner: HarborRunner, log: readonly string[]) {
    this.setting = setting;
    this.gateway = gateway;
    this.runner = runner;
    this.log = log;
  }

  static async make(): Promise<TerminusSetting> {
    const setting = await Setting.make();
    const log: string[] = [];
    const runner = await HarborRunner.start({ ...setting.options, onLog: (line) => log.push(line) });
    return new TerminusSetting(setting, await startGateway({ host: '127.0.0.1', port: 0 }), runner, log);
  }

  /** One trial at the task `copy` to its end: at most 8 turns, 30k tokens of context, 1000 a turn, no compaction. */
  async play({
    sampler,
    renderer,
    agent,
    document = { runtime: 'terminus-2', kwargs: {}, env: {} },
    gateway,
    environment,
    options,
    agentMs = 60_000,
  }: Play): Promise<TrialRun & { readonly session: GatewaySession }> {
    const trialId = `terminus-${this.#count++}` as TrialId;
    const maxTurns = agent?.maxTurns ?? 8;
    const limits = { contextLimitTokens: 30_000, temperature: 1 };
    await using session = this.gateway.open({
      trialId,
      modelName: 'lab/scripted',
      sampler,
      renderer,
      maxTokensPerCall: 1000,
      ...limits,
      ...gateway,
    });
    this.keys.push(session.apiKey);
    const terminus = agentConfig(document, {
      apiBase: session.apiBase,
      model: 'lab/scripted',
      maxTurns,
      maxTokens: 1000,
      compaction: false,
      ...limits,
      ...agent,
    });
    const config = this.setting.config({ model: 'unused', name: trialId, ...(environment ? { kwargs: environment } : {}) });
    const run = await this.runner.run(
      { ...config, agent: { ...terminus, override_timeout_sec: agentMs / 1000 } },
      { rewardKey: 'reward', maxTurns, secrets: { STILLROOM_GATEWAY_KEY: session.apiKey }, ...options },
    );
    return { ...run, session };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runner.close();
    await this.gateway.close();
    await this.setting[Symbol.asyncDispose]();
  }
}

/** What terminus-2 expects the model to say: keystrokes, and whether the task is done (it wants to hear that twice). */
export function terminusTurn(keystrokes: readonly string[], { done = false } = {}): string {
  const commands = keystrokes.map((keys) => ({ keystrokes: keys, duration: 0.1 }));
  return JSON.stringify({ analysis: 'as seen', plan: 'as said', commands, task_complete: done });
}

function hasTmux(): boolean {
  try {
    execFileSync('tmux', ['-V'], { stdio: 'ignore' });
    return true;
  } catch {
    console.warn(NO_TMUX);
    return false;
  }
}
