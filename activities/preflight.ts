import { randomUUID } from 'node:crypto';
import { join, resolve } from 'node:path';
import { cancellationSignal } from '@temporalio/activity';
import type { BlobRef } from '../core/ids.ts';
import type { Usage } from '../core/measures/usage.ts';
import { PREFLIGHT_BOOK } from '../core/recordings/book-name.ts';
import { usageOf } from '../core/recordings/books.ts';
import { failed, passed } from '../core/run/check.ts';
import { studentOf, teacherOf } from '../core/run/models.ts';
import type { Check } from '../core/run/results.ts';
import type { ModelRef } from '../core/run/trial.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { Gateway } from '../services/gateway/index.ts';
import { AGENT_CANNOT_PLAY, type AgentConfig, dryRunAgent, removeTree, type TrialRun, trialConfig } from '../services/harbor/index.ts';
import { SessionLost } from '../services/tinker/index.ts';
import { agentWiring } from './agent-wiring.ts';
import { whileBeating } from './beating.ts';
import { isBillingPause } from './billing.ts';
import { checkPublicUrl } from './gateway-check.ts';
import {
  checkContext,
  checkPing,
  checkTeacherAgrees,
  checkTemplate,
  checkTokenProof,
  checkVocabulary,
  type ModelPair,
  type ModelSide,
  type Reach,
} from './model-checks.ts';
import { openBook, unforked } from './paid-calls.ts';
import { bookedModels } from './preflight-calls.ts';
import type { RendererOf } from './renderers.ts';
import type { RolloutDeps } from './rollouts.ts';
import type { RunRecord, RunRecords } from './run-records.ts';

export type PreflightDeps = {
  readonly records: RunRecords;
  readonly objects: ObjectStore;
  readonly models: Reach['models'];
  readonly rendererOf: RendererOf;
};
export type ModelChecks = { readonly checks: readonly Check[]; readonly usage: Usage };
export type PreflightActivities = ReturnType<typeof createPreflightActivities>;
export type SandboxActivities = ReturnType<typeof createSandboxActivities>;

export function createPreflightActivities({ records, objects, models, rendererOf }: PreflightDeps) {
  return {
    /**
     * Looks at both models before much money is spent. Every check is in the result with its numbers; the first that fails ends the
     * round. The checks' own calls are paid for: `usage` has them, those of attempts that died included.
     */
    async checkModels({ run }: { run: BlobRef }): Promise<ModelChecks> {
      const record = await records.load(run);
      const work = async () => {
        const calls = await openBook(objects, record.runId, PREFLIGHT_BOOK);
        const student = studentOf(record.config.student);
        const reach = { models: bookedModels(models, calls, student), signal: cancellationSignal() };
        const checks = await modelChecks(record, reach, rendererOf);
        return { checks, usage: usageOf(calls.calls, 'preflight') };
      };
      return whileBeating(() => unforked(work), models.longestWait);
    },
  };
}

async function modelChecks(record: RunRecord, reach: Reach, rendererOf: RendererOf): Promise<Check[]> {
  const { config } = record;
  const pair = await tried('renderers', () => pairOf(record, rendererOf));
  if ('ok' in pair) return [pair];
  const told = ({ renderer: { name, tokenizer } }: ModelSide) => `${name} (tokenizer ${tokenizer})`;
  const checks = [passed('renderers', `student ${told(pair.student)}, teacher ${told(pair.teacher)}`)];
  const rounds: [string, () => Promise<Check>][] = [
    ['vocabulary', () => checkVocabulary(pair)],
    ['template and stop ids', () => checkTemplate(pair)],
    ['student answers', () => checkPing('student', pair.student, reach)],
    ['teacher answers', () => checkPing('teacher', pair.teacher, reach)],
    ['student context', () => checkContext('student', pair.student, config, reach)],
    ['teacher context', () => checkContext('teacher', pair.teacher, config, reach)],
    ['tokens in, tokens out', () => checkTokenProof(pair.student, reach)],
    ['teacher agrees with itself', () => checkTeacherAgrees(pair.teacher, reach)],
  ];
  for (const [name, check] of rounds) {
    const result = await tried(name, check);
    checks.push(result);
    if (!result.ok) break;
  }
  return checks;
}

export type SandboxDeps = Pick<RolloutDeps, 'records' | 'harbor' | 'trialsDir' | 'projectRoot'> & {
  readonly gateway: Pick<Gateway, 'publicUrl'>;
};

export function createSandboxActivities(deps: SandboxDeps) {
  return {
    /**
     * A gateway must answer at this worker's public URL, if it has one. Then one dry-run trial with harbor's `nop` agent: the sandbox must
     * start and the grader must yield a reward, 0 included.
     */
    async checkSandbox({ run }: { run: BlobRef }): Promise<readonly Check[]> {
      const record = await deps.records.load(run);
      return whileBeating(async () => {
        const { publicUrl } = deps.gateway;
        const reached = publicUrl === undefined ? [] : [await checkPublicUrl(publicUrl, cancellationSignal())];
        return reached.some(({ ok }) => !ok) ? reached : [...reached, await tried('dry-run trial', () => dryRun(record, deps))];
      });
    },
  };
}

/** Its agent does nothing. Less than the workflow waits for this activity, so that the cause is told. */
const DRY_RUN_LIMITS = { limitMs: 15 * 60_000, graceMs: 2 * 60_000 };

async function dryRun(record: RunRecord, { harbor, trialsDir: place, projectRoot }: SandboxDeps): Promise<Check> {
  const name = 'dry-run trial';
  const trialsDir = await place();
  const [task] = record.train;
  if (!task) return failed(name, 'the run has no training task');
  const trialName = `${record.trialPrefix}-nop-${randomUUID().slice(0, 8)}`;
  const config = trialConfig({
    taskDir: resolve(projectRoot, task.path),
    trialName,
    trialsDir,
    template: record.jobTemplate,
    agent: nopOf(record),
    timeouts: { agentMs: record.config.rollout.episode_timeout_s * 1000 },
  });
  const runner = await harbor();
  const outcome = await runner
    .run(config, { rewardKey: record.config.harbor.reward_key, secrets: NO_KEY, limits: DRY_RUN_LIMITS, signal: cancellationSignal() })
    .finally(() => removeTree(join(trialsDir, trialName)));
  if (outcome.exceptionType === AGENT_CANNOT_PLAY) return failed(name, `agent ${record.agent.name}: ${outcome.exceptionMessage}`);
  if (outcome.reward === null) return failed(name, `task ${task.id}: ${whyNoReward(outcome)}`);
  const ms = outcome.timings.totalMs ?? 0;
  return passed(name, `task ${task.id}: reward ${outcome.reward} for an agent that does nothing, in ${ms} ms`, {
    reward: outcome.reward,
    ms,
  });
}

/** An agent that looks whether the run's own could play, and does nothing. */
function nopOf({ agent, config, jobTemplate }: RunRecord): AgentConfig {
  const { max_turns: maxTurns, context_budget_tokens: contextLimitTokens } = config.rollout;
  return dryRunAgent(agent, agentWiring(config, { model: config.student.base_model, maxTurns, contextLimitTokens }), jobTemplate);
}

/** The agent is made with a key, and asks for nothing with it. */
const NO_KEY = { STILLROOM_GATEWAY_KEY: 'a-key-that-opens-nothing' };

/** A trial that reached its grader had a sandbox; without a reward from there the task itself is at fault. */
function whyNoReward({ infraReason, timings }: TrialRun): string {
  return timings.verifierMs === null
    ? `the sandbox did not get as far as the grader: ${infraReason}`
    : `the benchmark is broken, its grader yields no reward: ${infraReason}`;
}

async function pairOf(record: RunRecord, rendererOf: RendererOf): Promise<ModelPair> {
  const { student, teacher } = record.config;
  const one = async (model: ModelRef): Promise<ModelSide> => ({ model, renderer: await rendererOf(record, model.model) });
  return { student: await one(studentOf(student)), teacher: await one(teacherOf(teacher)) };
}

/** A check that throws has failed, with the reason as its detail; a service that wants payment says nothing about the models. A lost session says nothing about the models: a new one is tried. */
async function tried<T>(name: string, check: () => Promise<T>, isLastTry = false): Promise<T | Check> {
  try {
    return await check();
  } catch (error) {
    if (cancellationSignal().aborted || isBillingPause(error)) throw error;
    if (error instanceof SessionLost && !isLastTry) return tried(name, check, true);
    return failed(name, error instanceof Error ? error.message : String(error));
  }
}
