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
import { SessionLost } from '../services/tinker/index.ts';
import { whileBeating } from './beating.ts';
import { isBillingPause } from './billing.ts';
import { type DryRunDeps, dryRun } from './dry-run.ts';
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

export type SandboxDeps = DryRunDeps & {
  readonly records: RunRecords;
  readonly gateway: Pick<Gateway, 'publicUrl'>;
};

export function createSandboxActivities(deps: SandboxDeps) {
  return {
    /**
     * A gateway must answer at this worker's public URL, if it has one. Then dry-run trials on a few tasks, whose agent does nothing
     * but look whether the run's own could play: each sandbox must start and each grader must yield a reward, 0 included.
     */
    async checkSandbox({ run }: { run: BlobRef }): Promise<readonly Check[]> {
      const record = await deps.records.load(run);
      return whileBeating(async () => {
        const { publicUrl } = deps.gateway;
        const reached = publicUrl === undefined ? [] : [await checkPublicUrl(publicUrl, cancellationSignal())];
        return reached.some(({ ok }) => !ok)
          ? reached
          : [...reached, await tried('dry-run trial', () => dryRun(record, deps, cancellationSignal()))];
      });
    },
  };
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
