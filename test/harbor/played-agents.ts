import { join } from 'node:path';
import { expect } from 'vitest';
import { ModelAccess } from '../../activities/model-access.ts';
import { Renderers } from '../../activities/renderers.ts';
import { createRolloutActivities, type RolloutDeps } from '../../activities/rollouts.ts';
import { CONFIG, Project, TEMPLATE } from '../../activities/testing/project.ts';
import { inActivity } from '../../activities/testing/training.ts';
import type { TrialId } from '../../core/ids.ts';
import type { TrialSummary } from '../../core/run/trial.ts';
import { buildDatums, datumLimits } from '../../core/tokens/datums.ts';
import { decodeEpisode } from '../../core/tokens/episode-codec.ts';
import type { Datum, Episode } from '../../core/tokens/span.ts';
import { type Gateway, startGateway } from '../../services/gateway/index.ts';
import { loadTokenizer } from '../../services/gateway/tokenizer/native.ts';
import type { Tokenizer } from '../../services/gateway/tokenizer/tokenizer.ts';
import { HarborRunner, harborPython, TrialMemory } from '../../services/harbor/index.ts';
import { ModelFiles } from '../../services/hub/index.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { TinkerClient } from '../../services/tinker/index.ts';
import { CountingProxy } from '../support/counting-proxy.ts';
import { ScriptedService } from '../support/scripted-service.ts';
import { testModel } from '../support/tokenizers.ts';
import { everythingIn, PLUGIN_DIR, SANDBOX_MODE } from './setting.ts';

const MODEL = 'Qwen/Qwen3-8B';
const TURNS_MOST = 8;
const REAL = CONFIG.replaceAll('stillroom/tiny-student', MODEL)
  .replace('"stillroom/tiny-teacher" = "stillroom_tiny"\n', '')
  .replaceAll('stillroom/tiny-teacher', MODEL)
  .replaceAll('stillroom_tiny', 'qwen3')
  .replace('max_tokens = 28', 'max_tokens = 2000')
  .replace('context_budget_tokens = 1024', 'context_budget_tokens = 40000')
  .replace('episode_timeout_s = 30', 'episode_timeout_s = 60');
const SOLVED = 'if [ "$(cat map)" = 7 ]; then r=1; else r=0; fi\necho $r > "$LOGS_DIR/verifier/reward.txt"\n';

export type Player = {
  /** As a run names it: a built-in agent, or the document of one's own. */
  readonly agent: string | object;
  /** What the model says, turn by turn. */
  readonly says: readonly string[];
  /** Host folders that the sandbox is shown. */
  readonly binds?: readonly string[];
  /** Of the project; default `a`, which is solved when `map` is a copy of `sun`. */
  readonly task?: string;
  /** Instead of the trial's own key. */
  readonly key?: string;
};

export type Played = {
  readonly trial: TrialSummary;
  /** The ids that the model said, turn by turn. */
  readonly said: readonly Int32Array[];
  readonly prompts: readonly Int32Array[];
  /** As it is stored. */
  readonly episode: Episode | null;
  /** What is trained on: made of the episode as the scoring activity does it. */
  readonly datums: readonly Datum[];
  /** The trial's key, and all that its files held. */
  readonly key: string;
  readonly files: string;
};

/** Trials as a run has them: the real activity, harbor, sandbox, gateway and client, a real model's tokenizer, and a scripted Tinker service. */
export class PlayedAgents implements AsyncDisposable {
  readonly project: Project;
  readonly tokenizer: Tokenizer;
  readonly gateway: Gateway;
  /** Before the gateway: what agents outside of sandboxes ask, they ask here. */
  readonly proxy: CountingProxy;
  readonly runner: HarborRunner;
  readonly service: ScriptedService;
  readonly models: ModelAccess;
  readonly #rendererOf: RolloutDeps['rendererOf'];
  #count = 0;

  private constructor(parts: Pick<PlayedAgents, 'project' | 'tokenizer' | 'gateway' | 'proxy' | 'runner' | 'service'>, folder: string) {
    ({ project: this.project, tokenizer: this.tokenizer, gateway: this.gateway } = parts);
    ({ proxy: this.proxy, runner: this.runner, service: this.service } = parts);
    this.models = new ModelAccess(() => TinkerClient.connect({ baseUrl: this.service.url, apiKey: 'tml-of-the-test' }));
    const files = new ModelFiles({ cacheDir: '/nowhere', endpoint: null, token: null, offline: true }, { [MODEL]: { folder } });
    this.#rendererOf = new Renderers({ objects: this.project.objects, files, tokenizerIn: async () => this.tokenizer }).of;
  }

  static async make(): Promise<PlayedAgents> {
    const { folder } = await testModel('qwen3');
    const project = await Project.make();
    await project.task('a', { content: 'copy sun to map', testScript: SOLVED });
    const tokenizer = await loadTokenizer(folder);
    const pythonPath = [PLUGIN_DIR, join(PROJECT_ROOT, 'examples/agents')].join(':');
    const runner = await HarborRunner.start({
      python: await harborPython(PROJECT_ROOT),
      pluginDir: PLUGIN_DIR,
      home: join(project.root, 'home'),
      sandboxRoot: join(project.root, 's'),
      env: { PYTHONPATH: pythonPath },
    });
    const service = await ScriptedService.start([MODEL], tokenizer.tokenId('<|im_end|>') ?? -1);
    const proxy = await CountingProxy.start();
    const gateway = await startGateway({ host: '127.0.0.1', port: 0, publicUrl: proxy.url });
    proxy.target = gateway.localUrl;
    return new PlayedAgents({ project, tokenizer, gateway, proxy, runner, service }, folder);
  }

  /** Ids of a text as a model may sample it: markers as their tokens, the rest cut where no tokenizer would cut it. */
  async oddIds(text: string): Promise<Int32Array> {
    const parts = text
      .split(/(<\/?(?:think|tool_call)>)/)
      .flatMap((part) => (part.startsWith('<') ? [part] : (part.match(/.{1,3}/gs) ?? [])));
    const ids = await Promise.all(parts.map((part) => this.tokenizer.encode(part)));
    return Int32Array.from([...ids.flatMap((each) => [...each]), this.tokenizer.tokenId('<|im_end|>') ?? -1]);
  }

  /** One trial to its end, of a run of its own. */
  async play({ agent, says, binds = [], task = 'a', key: otherKey }: Player): Promise<Played> {
    const name = `t${this.#count++}`;
    const { project, gateway, runner, models } = this;
    await project.file(`${name}.json`, JSON.stringify(template(binds)));
    if (typeof agent !== 'string') await project.harnesses.save(agent, { name, key: name });
    const config = REAL.replace('job.json', `${name}.json`);
    const { ref } = await project.resolve({ agent: typeof agent === 'string' ? agent : name, config }, { runId: name, executionId: name });
    const record = await project.records.load(ref);
    const said = await Promise.all(says.map((text) => this.oddIds(text)));
    const path = this.service.weights(name, said);
    let key = '';
    let files = '';
    const { runTrial } = createRolloutActivities({
      ...project,
      models,
      gateway,
      rendererOf: this.#rendererOf,
      harbor: async () => ({
        run: async (trial, given) => {
          key = otherKey ?? given.secrets?.STILLROOM_GATEWAY_KEY ?? '';
          const run = await runner.run(trial, { ...given, secrets: { STILLROOM_GATEWAY_KEY: key } });
          files = await everythingIn(run.trialDir);
          return run;
        },
      }),
      trialsDir: async () => join(project.root, 'trials'),
      memory: new TrialMemory({ reserveBytes: 0 }),
      runnerSecrets: [],
      tasks: project.tasks,
      drain: new AbortController().signal,
    });
    const trial = await inActivity(name, 1, () =>
      runTrial({
        run: ref,
        trialId: `${record.trialPrefix}-s0001-000-0` as TrialId,
        task: record.train.find(({ id }) => id === task) ?? expect.fail(`no task ${task}`),
        who: 'student',
        model: { kind: 'sampler', model: MODEL, path, version: 'step-0001' },
        maxTurns: TURNS_MOST,
        trains: true,
      }),
    );
    const episode = trial.spans === null ? null : decodeEpisode(await project.blobs.get(trial.spans));
    const { datums } = buildDatums(episode === null ? [] : [episode], datumLimits(record.config));
    return { trial, said, prompts: this.service.prompts(path), episode, datums, key, files };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runner.close();
    await this.models[Symbol.asyncDispose]();
    await Promise.all([this.gateway.close(), this.proxy[Symbol.asyncDispose](), this.service[Symbol.asyncDispose]()]);
    await this.project[Symbol.asyncDispose]();
  }
}

function template(binds: readonly string[]) {
  const kwargs = SANDBOX_MODE === 'plain' ? { mode: 'plain' } : { mode: 'bwrap', read_only_binds: binds };
  return { ...TEMPLATE, environment: { ...TEMPLATE.environment, kwargs } };
}
