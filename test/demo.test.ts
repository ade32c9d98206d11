import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectTo } from '../client/connection.ts';
import { freePorts } from '../services/processes/index.ts';
import { PROJECT_ROOT, readAppSettings, readEnvironment } from '../services/settings/index.ts';
import type { RunResult, TrialProgress } from '../workflows/messages.ts';
import { DemoProcess } from './support/demo-process.ts';
import { descendants, leftOf, type Process, scratchDirs } from './support/process-tree.ts';
import { forgetRun } from './support/product.ts';
import { trialsOf } from './support/trial-attempts.ts';

const STEPS = 2;
const TRIALS_A_STEP = 8 * 4;
const HOLDOUT = 24;
const SIZE = `--steps ${STEPS} --tasks-per-batch 8 --group-size 4 --k 1 --holdout ${HOLDOUT} --learning-rate 6e-3`.split(' ');
const STARTED = /^started (demo-\S+): 2 steps of 8 tasks × 4$/m;
const ADDRESS = /export TEMPORAL_ADDRESS=(\S+)\n/;
const WEB_UI = /^Web UI: (\S+)\n/m;

let stateDir: string;
let ports: string[];
const runs = new Set<string>();
beforeAll(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'stillroom-demo-'));
  const [port, uiPort, trainerPort] = await freePorts(3);
  ports = ['--port', `${port}`, '--ui-port', `${uiPort}`, '--trainer-port', `${trainerPort}`];
});
afterAll(() => {
  rmSync(stateDir, { recursive: true, force: true });
  for (const runId of runs) forgetRun(readAppSettings(), runId);
});

const startDemo = () => new DemoProcess([...ports, '--state', stateDir, ...SIZE]);

it('a busy port: one clear message, exit code 2, and nothing was started', async () => {
  const { server, port } = await listening();
  await using demo = new DemoProcess([...ports, '--port', `${port}`, '--state', stateDir, ...SIZE]);
  expect(await demo.exitCode(), demo.text).toBe(2);
  expect(demo.text).toMatch(new RegExp(`^port ${port} \\(Temporal\\) is in use on this machine\\. Choose another with --port PORT.*\\n$`));
  for (const name of ['logs', 'temporal.db', 'trainer', 'demo.json']) expect(existsSync(join(stateDir, name)), name).toBe(false);
  server.close();
});

it('the demo: interrupted in mid-step, gone on with to its end, then begun anew', async () => {
  const { runId, interruptedAtMs } = await interrupted();
  const ending = await goneOnWith(runId);
  const { result, trials } = await begunAnew(runId);

  expect(trials.length).toBe(STEPS * TRIALS_A_STEP + 3 * HOLDOUT);
  const finished = trials.filter(({ completedAtMs }) => completedAtMs !== null && completedAtMs < interruptedAtMs);
  expect(finished.length).toBeGreaterThan(2 * HOLDOUT);
  expect(finished.filter(({ attempts }) => attempts > 1)).toEqual([]);
  const again = trials.reduce((sum, { attempts }) => sum + attempts - 1, 0);
  expect(again).toBeLessThanOrEqual(readAppSettings().workers.rolloutSlots);

  expectReport(ending.text, result);
  expect(ending.code).toBe(result.outcome === 'accepted' ? 0 : 3);
  console.log(`demo: ${result.outcome}; ${finished.length} trials were finished at the interrupt, ${again} were run again`);
}, 400_000);

/** Starts the demo, looks at what it promises while it runs, and presses Ctrl-C while trials run in sandboxes. */
async function interrupted() {
  await using demo = startDemo();
  const runId = await demo.says(STARTED);
  runs.add(runId);
  await expectWebUi(await demo.says(WEB_UI), runId);
  const link = await connectTo(await demo.says(ADDRESS));
  const { known, dirs } = await midStep(link.client, runId, demo.pid);
  await link.close();
  const interruptedAtMs = Date.now();
  demo.interrupt();
  expect(await demo.exitCode(), demo.text).toBe(130);
  expect(demo.text).toContain('interrupted; the same command goes on with this run');
  expect(demo.text).toMatch(/^teacher on held-out tasks: \d+\.\d % \(\d+\/24 over 24 tasks\)$/m);
  expect(leftOf(known, [stateDir, ...dirs])).toEqual([]);
  expect(dirs.filter((dir) => existsSync(dir))).toEqual([]);
  return { runId, interruptedAtMs };
}

/** The same command again: it goes on with the run, and ends. */
async function goneOnWith(runId: string) {
  await using demo = startDemo();
  const code = await demo.exitCode();
  expect(demo.text).toContain(`going on with ${runId}, which was interrupted`);
  expect(demo.text).not.toMatch(STARTED);
  expect(leftOf([], [stateDir])).toEqual([]);
  return { code, text: demo.text };
}

/** After a finished run the same command starts a new one. Its server still knows the old one, which is read here. */
async function begunAnew(oldId: string) {
  await using demo = startDemo();
  const runId = await demo.says(STARTED);
  runs.add(runId);
  expect(runId).not.toBe(oldId);
  const link = await connectTo(await demo.says(ADDRESS));
  const result = (await link.client.workflow.getHandle(oldId).result()) as RunResult;
  const children = ['eval-teacher', 'eval-student-before', 'step-0001', 'step-0002', 'eval-student-after'];
  const trials = (await Promise.all(children.map((child) => trialsOf(link.client, `${oldId}.${child}`)))).flat();
  await link.close();
  demo.interrupt();
  expect(await demo.exitCode(), demo.text).toBe(130);
  return { result, trials };
}

/** The page is there, and what it shows is a server that knows the run. */
async function expectWebUi(url: string, runId: string): Promise<void> {
  const page = await fetch(url);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
  const api = await fetch(new URL(`/api/v1/namespaces/default/workflows/${runId}`, url));
  expect(await api.json()).toMatchObject({ workflowExecutionInfo: { type: { name: 'distill' } } });
}

/** Waits until a step has finished trials and others in flight (in sandboxes, if there are any); what runs for it then. */
async function midStep(client: Client, runId: string, pid: number): Promise<{ known: readonly Process[]; dirs: readonly string[] }> {
  for (let step = 1; step <= STEPS; ) {
    await sleep(20);
    const { done, running } = await stepProgress(client, runId, step);
    if (done === TRIALS_A_STEP) step++;
    if (done === 0 || running < 2) continue;
    const known = descendants(pid);
    const all = known.map(({ command }) => command).join('\n');
    if (readEnvironment().sandbox === 'bwrap' && !/^\S*bwrap /m.test(all)) continue;
    for (const part of ['server start-dev', 'trainer/main.ts', 'worker.ts', 'stillroom_harbor.runner']) expect(all).toContain(part);
    const dirs = scratchDirs(known);
    if (process.platform === 'linux')
      expect(dirs.map((dir) => basename(dir).slice(0, 16)).sort()).toEqual(['stillroom-harbor', 'stillroom-trials']);
    return { known, dirs };
  }
  throw new Error('both steps passed without a moment of trials in flight');
}

function stepProgress(client: Client, runId: string, step: number): Promise<Pick<TrialProgress, 'done' | 'running'>> {
  const child = client.workflow.getHandle(`${runId}.step-${String(step).padStart(4, '0')}`);
  return child.query<TrialProgress>('progress').catch(() => ({ done: 0, running: 0 })); // not begun yet
}

/** The end that a person sees is the run's own result. */
function expectReport(text: string, { runId, outcome, verdict, evaluations, adapter }: RunResult): void {
  expect(text).toMatch(/^step 2\/2: solved \d+\.\d % \(\d+\/32\) · KL\/token -?\d+\.\d{3} nats · spend \$/m);
  const end = text.slice(text.indexOf(`\n${runId} ended: ${outcome}\n`));
  expect(end.startsWith(`\n${runId} ended`)).toBe(true);
  expect(['accepted', 'rejected']).toContain(outcome);
  expect(evaluations.map(({ label }) => label)).toEqual(['teacher', 'student-before', 'student-after']);
  for (const { label, passed, executed, perTask } of evaluations) {
    expect(perTask.length).toBe(HOLDOUT);
    expect(end).toMatch(new RegExp(`^${label.replace('-', ' ')} .* ${passed}/${executed} +${HOLDOUT} `, 'm'));
  }
  expect(end).toContain(`Gate: ${verdict?.accepted ? 'accepted' : 'not accepted'}\n`);
  expect(verdict?.accepted).toBe(outcome === 'accepted');
  expect(end).toMatch(new RegExp(`after − before .* interval .* \\(sign-flip\\) · n = ${HOLDOUT} tasks`));
  if (adapter) expect(end).toContain(`adapter    ${adapter.name} v${adapter.version}\n           ${adapter.path}\n`);
  expect(end).toContain(`run folder ${join('.stillroom', 'runs', runId)}\n`);
  expect(existsSync(join(PROJECT_ROOT, '.stillroom', 'runs', runId, 'metrics.jsonl'))).toBe(true);
  for (const part of ['making the tasks', 'start-up', 'baselines', 'steps', 'evaluation', 'all'])
    expect(end).toMatch(new RegExp(`^${part} +(\\d+ min )?\\d+(\\.\\d)? s`, 'm'));
}

async function listening(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no TCP port');
  return { server, port: address.port };
}
