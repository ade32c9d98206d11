import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { execa } from 'execa';
import {
  type HarborRunner,
  harborPython,
  parseJobTemplate,
  type RunnerProcessOptions,
  type RunTrialOptions,
  type TrialConfig,
  type TrialRun,
  trialConfig,
  turnAgent,
} from '../../services/harbor/index.ts';
import { FakeModel, type Script } from './fake-model.ts';

const PROJECT_DIR = resolve(import.meta.dirname, '../..');
export const PLUGIN_DIR = join(PROJECT_DIR, 'harbor_plugin');

/** Plain only if the person who runs the tests asked for it by name. */
export const SANDBOX_MODE = process.env.STILLROOM_SANDBOX === 'plain' ? 'plain' : 'bwrap';

export const SECRET = 'sk-this-must-never-be-written';

export type TrialWish = {
  readonly model: string;
  readonly taskDir?: string;
  readonly kwargs?: Record<string, unknown>;
  readonly agentMs?: number;
  readonly agentKwargs?: Record<string, unknown>;
  readonly name?: string;
};

/** A task, a fake model, and everything else that trials with the real harbor need, in one temp folder. */
export class Setting implements AsyncDisposable {
  readonly dir: string;
  readonly model: FakeModel;
  readonly options: RunnerProcessOptions;
  #count = 0;

  private constructor(dir: string, model: FakeModel, options: RunnerProcessOptions) {
    this.dir = dir;
    this.model = model;
    this.options = options;
  }

  static async make(): Promise<Setting> {
    const dir = await mkdtemp(join(tmpdir(), 'stillroom-harbor-test-'));
    const python = await harborPython(PROJECT_DIR);
    const sandboxRoot = join(dir, 'sandboxes');
    await mkdir(sandboxRoot);
    const setting = new Setting(dir, await FakeModel.start(), { python, pluginDir: PLUGIN_DIR, home: join(dir, 'home'), sandboxRoot });
    await setting.makeTask('copy');
    return setting;
  }

  /** A task that is solved when the file `map` holds what `sun` holds. */
  async makeTask(id: string, sections = '', head = ''): Promise<string> {
    const task = join(this.dir, 'tasks', id);
    await mkdir(join(task, 'tests'), { recursive: true });
    await mkdir(join(task, 'environment'));
    await writeFile(join(task, 'environment/sun'), '7\n');
    await writeFile(join(task, 'instruction.md'), 'files sun\ntask copy sun to map\n');
    await writeFile(join(task, 'task.toml'), `schema_version = "1.4"\n${head}[task]\nname = "lab/${id}"\n${sections}`);
    const script = 'if [ "$(cat map)" = 7 ]; then r=1; else r=0; fi\necho $r > "$LOGS_DIR/verifier/reward.txt"\n';
    await writeFile(join(task, 'tests/test.sh'), `#!/bin/sh\n${script}`);
    await chmod(join(task, 'tests/test.sh'), 0o755);
    return task;
  }

  config({ model, taskDir, kwargs, agentMs, agentKwargs, name }: TrialWish): TrialConfig {
    this.#count += 1;
    const template = {
      environment: {
        import_path: 'stillroom_harbor.environment:ProcessEnvironment',
        kwargs: SANDBOX_MODE === 'plain' ? { mode: 'plain', ...kwargs } : { ...kwargs },
      },
      verifier: { import_path: 'stillroom_harbor.environment:HostVerifier' },
      datasets: [{ path: 'tasks' }],
    };
    const agent = turnAgent({ apiBase: this.model.apiBase, model, maxTurns: 8, temperature: 1, maxTokens: 26 });
    return trialConfig({
      taskDir: taskDir ?? join(this.dir, 'tasks/copy'),
      trialName: name ?? `trial-${this.#count}`,
      trialsDir: join(this.dir, 'trials'),
      template: parseJobTemplate(JSON.stringify(template), 'job.json'),
      agent: { ...agent, kwargs: { ...agent.kwargs, ...agentKwargs } },
      timeouts: { agentMs: agentMs ?? 60_000 },
    });
  }

  /** Runs one trial of the script to its end. */
  async run(
    runner: HarborRunner,
    script: Script | readonly string[],
    wish: Omit<TrialWish, 'model'> = {},
    options: Partial<RunTrialOptions> = {},
  ): Promise<TrialRun & { observations: string[] }> {
    const model = this.model.model(script);
    const run = await runner.run(this.config({ model, ...wish }), {
      rewardKey: 'reward',
      secrets: { STILLROOM_GATEWAY_KEY: SECRET },
      ...options,
    });
    return { ...run, observations: this.model.observations(model) };
  }

  /** Names of the sandboxes that exist, whoever made them. */
  async sandboxes(): Promise<string[]> {
    const runners = await readdir(join(this.dir, 'sandboxes'));
    const all = await Promise.all(runners.map((name) => readdir(join(this.dir, 'sandboxes', name)).catch(() => [])));
    return all.flat().filter((name) => name.startsWith('sandbox-'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.model[Symbol.asyncDispose]();
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** The command lines of running processes that contain `text`. */
export async function processesWith(text: string): Promise<string[]> {
  const { stdout } = await execa('ps', ['-A', '-ww', '-o', 'args=']);
  return stdout.split('\n').filter((line) => line.includes(text) && !line.startsWith('ps '));
}

/** Waits until `check` holds. */
export async function until(what: string, check: () => Promise<boolean>, limitMs = 15_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** All files below a folder as one text. */
export async function everythingIn(dir: string): Promise<string> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const texts = entries.filter((entry) => entry.isFile()).map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8'));
  return (await Promise.all(texts)).join('\n');
}
