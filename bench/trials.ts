/**
 * What a harbor trial costs: `node bench/trials.ts [trials per row]`. A trial is three model calls to an instant fake model, two
 * commands and a graded test script. "box CPU" is the time both sides and every process of the sandbox kept a core busy; it also counts
 * whatever else the machine does, so it means something only when the machine is idle otherwise.
 */
import { rm } from 'node:fs/promises';
import { cpus } from 'node:os';
import { HarborRunner, TrialFolders } from '../services/harbor/index.ts';
import { SANDBOX_MODE, Setting } from '../test/harbor/setting.ts';

const TASKS = 16;
const CONCURRENCIES = [4, 8];
const SCRIPT = ['cp sun map', 'ls'];

const trials = Number(process.argv[2] ?? 200);
if (!Number.isInteger(trials) || trials < 1) throw new Error(`bench/trials: "${process.argv[2]}" is not a number of trials`);

/** Milliseconds that all cores together were busy since the machine started. */
function busyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.sys + times.nice + times.irq, 0);
}

await using setting = await Setting.make();
await using folders = new TrialFolders();
const scratch = await folders.place();
const tasks = await Promise.all(Array.from({ length: TASKS }, (_, i) => setting.makeTask(`task-${i}`)));
const { sandboxRoot: _slow, ...options } = setting.options;
await using runner = await HarborRunner.start(options);
const model = setting.model.model(SCRIPT);

async function runOne(index: number): Promise<void> {
  const taskDir = tasks[index % TASKS];
  if (taskDir === undefined) throw new Error('no task');
  const config = { ...setting.config({ model, taskDir }), trials_dir: scratch };
  const run = await runner.run(config, { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: 'key' } });
  if (run.reward !== 1) throw new Error(`a trial went wrong: ${run.infraReason ?? `reward ${run.reward}`}`);
  await rm(run.trialDir, { recursive: true });
}

async function runAll(count: number, concurrency: number): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await runOne(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
}

try {
  await runAll(TASKS, 4); // the first trial of a task reads and hashes it
  console.log(`sandbox ${SANDBOX_MODE}, ${trials} trials a row, ${cpus().length} cores`);
  for (const concurrency of CONCURRENCIES) {
    const [startMs, startBusyMs] = [performance.now(), busyMs()];
    await runAll(trials, concurrency);
    const [wallMs, boxMs] = [performance.now() - startMs, busyMs() - startBusyMs];
    console.log(
      `  ${concurrency} at a time: ${(wallMs / trials).toFixed(1)} ms wall a trial, ${(boxMs / trials).toFixed(1)} ms box CPU a trial`,
    );
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
