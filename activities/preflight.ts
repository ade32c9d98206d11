import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { cancellationSignal, heartbeat } from '@temporalio/activity';
import type { BlobRef } from '../core/ids.ts';
import { failed, passed } from '../core/run/check.ts';
import type { Check } from '../core/run/results.ts';
import type { ModelRef } from '../core/run/trial.ts';
import type { ChatRenderer } from '../services/gateway/index.ts';
import { nopAgent, trialConfig } from '../services/harbor/index.ts';
import { configuredRenderer } from './configured-renderer.ts';
import type { ModelAccess } from './model-access.ts';
import {
  checkContext,
  checkPing,
  checkTeacherAgrees,
  checkTemplate,
  checkTokenProof,
  checkVocabulary,
  type ModelPair,
} from './model-checks.ts';
import type { RolloutDeps } from './rollouts.ts';
import type { RunRecord, RunRecords } from './run-records.ts';

export type PreflightDeps = {
  readonly records: RunRecords;
  readonly models: ModelAccess;
  /** Finds a model's renderer by the config's name for it. */
  readonly renderer?: (config: RunRecord['config'], model: string) => ChatRenderer;
};
export type PreflightActivities = ReturnType<typeof createPreflightActivities>;
export type SandboxActivities = ReturnType<typeof createSandboxActivities>;

export function createPreflightActivities({ records, models, renderer = configuredRenderer }: PreflightDeps) {
  return {
    /** Looks at both models before money is spent. Every check is in the result with its numbers; the first that fails ends the round. */
    async checkModels({ run }: { run: BlobRef }): Promise<readonly Check[]> {
      const { config } = await records.load(run);
      const checks: Check[] = [];
      const pair = await tried('renderers', async () => pairOf(config, renderer));
      if ('ok' in pair) return [pair];
      checks.push(passed('renderers', `student ${pair.student.renderer.name}, teacher ${pair.teacher.renderer.name}`));
      const rounds: [string, () => Promise<Check>][] = [
        ['vocabulary', () => checkVocabulary(pair)],
        ['template and stop ids', () => checkTemplate(pair)],
        ['student answers', () => checkPing('student', pair.student, models)],
        ['teacher answers', () => checkPing('teacher', pair.teacher, models)],
        ['student context', () => checkContext(pair.student.model, config, models)],
        ['teacher context', () => checkContext(pair.teacher.model, config, models)],
        ['tokens in, tokens out', () => checkTokenProof(pair.student, models)],
        ['teacher agrees with itself', () => checkTeacherAgrees(pair.teacher, models)],
      ];
      for (const [name, check] of rounds) {
        const result = await tried(name, check);
        heartbeat();
        checks.push(result);
        if (!result.ok) break;
      }
      return checks;
    },
  };
}

export type SandboxDeps = Pick<RolloutDeps, 'records' | 'harbor' | 'trialsDir' | 'projectRoot'>;

export function createSandboxActivities(deps: SandboxDeps) {
  return {
    /** One dry-run trial with harbor's `nop` agent: the sandbox must start and the grader must yield a reward, 0 included. */
    async checkSandbox({ run }: { run: BlobRef }): Promise<readonly Check[]> {
      const record = await deps.records.load(run);
      return [await tried('dry-run trial', () => dryRun(record, deps))];
    },
  };
}

async function dryRun(record: RunRecord, { harbor, trialsDir, projectRoot }: SandboxDeps): Promise<Check> {
  const name = 'dry-run trial';
  const [task] = record.train;
  if (!task) return failed(name, 'the run has no training task');
  const runner = await harbor();
  const outcome = await runner.run(
    trialConfig({
      taskDir: resolve(projectRoot, task.path),
      trialName: `${record.trialPrefix}-nop-${randomUUID().slice(0, 8)}`,
      trialsDir,
      template: record.jobTemplate,
      agent: nopAgent,
      timeouts: { agentMs: record.config.rollout.episode_timeout_s * 1000 },
    }),
    { rewardKey: record.config.harbor.reward_key, signal: cancellationSignal() },
  );
  await rm(outcome.trialDir, { recursive: true, force: true });
  if (outcome.reward === null)
    return failed(name, `task ${task.id} yields no reward (${outcome.infraReason}): the benchmark or the sandbox is broken`);
  const ms = outcome.timings.totalMs ?? 0;
  return passed(name, `task ${task.id}: reward ${outcome.reward} for an agent that does nothing, in ${ms} ms`, {
    reward: outcome.reward,
    ms,
  });
}

function pairOf(config: RunRecord['config'], renderer: NonNullable<PreflightDeps['renderer']>): ModelPair {
  const one = (model: string): { model: ModelRef; renderer: ChatRenderer } => ({
    model: { kind: 'base', model, version: model },
    renderer: renderer(config, model),
  });
  return { student: one(config.student.base_model), teacher: one(config.teacher.model) };
}

/** A check that throws has failed, with the reason as its detail. */
async function tried<T>(name: string, check: () => Promise<T>): Promise<T | Check> {
  try {
    return await check();
  } catch (error) {
    if (cancellationSignal().aborted) throw error;
    return failed(name, error instanceof Error ? error.message : String(error));
  }
}
