import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { createPromotionActivities } from '../../../activities/promotion.ts';
import type { RunRecord } from '../../../activities/run-records.ts';
import { failureOf, Project, TEMPLATE } from '../../../activities/testing/project.ts';
import { yesOrNo } from '../../../client/ask.ts';
import { EXIT } from '../../../client/exit-codes.ts';
import { exitCodeOfReport } from '../../../client/foreground.ts';
import { InputRefused, type Problem } from '../../../client/input/problems.ts';
import { type BuiltStart, prepareStart } from '../../../client/input/start-input.ts';
import { answerTo } from '../../../client/questions.ts';
import type { SamplerPath, StatePath } from '../../../core/ids.ts';
import { HOSTED_SERVING_ENDPOINT } from '../../../core/promotion/handoff.ts';
import { needsConfirmation } from '../../../core/run/cost-confirmation.ts';
import type { Outcome } from '../../../core/run/phase.ts';
import type { PinnedRun } from '../../../core/run/pinned-run.ts';
import { VersionStore } from '../../../services/stores/version-store.ts';
import type { Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { type InvokeCase, parseStart, type Step, whyNotApplicable } from './cli-command.ts';

/** Our kinds of mistakes by the recorder's names. */
const KINDS: Readonly<Record<string, Problem['kind'] | 'run_dir_used' | `commander.${string}` | 'failed'>> = {
  config_not_found: 'config_unreadable',
  config_invalid: 'config_invalid',
  task_ids_unreadable: 'task_ids_unreadable',
  task_ids_shape: 'task_ids_shape',
  task_ids_invalid: 'task_ids_invalid',
  split_overlap: 'overlap',
  template_missing: 'template',
  unbounded_spend: 'unbounded_spend',
  invalid_agent_name: 'agent_name',
  no_such_harness: 'agent_unknown',
  no_such_version: 'agent_version',
  no_such_version_or_alias: 'agent_version',
  wrong_runtime: 'agent_runtime',
  missing_inputs: 'commander.missingMandatoryOptionValue',
  unknown_backend: 'commander.invalidArgument',
  run_dir_used: 'run_dir_used',
  run_failed: 'failed',
  engine_value_error: 'failed',
};

/** Their job template, which says nothing of where tasks are; any other text is taken as it is. */
const PLAIN_TEMPLATE = 'job_name: template\n';
/** The weights that the recorder's runs end with. */
const WEIGHTS = { samplerPath: 'tinker://w/final' as SamplerPath, statePath: 'tinker://w/state' as StatePath };

type Expected = { exit: number; started: boolean; error?: string; run_with?: object; record: unknown; promoted: unknown };
/** What our start came to: everything that was refused at once, or how far the run got. */
type Ours =
  | { readonly refused: readonly string[]; readonly exit: number }
  | {
      readonly started: BuiltStart;
      readonly pinned: PinnedRun;
      readonly tasks: Pick<RunRecord, 'train' | 'holdout'>;
      readonly exit: number | 'waits';
      readonly failed: boolean;
    };

export async function invoke(input: InvokeCase, expected: { steps: Expected[] }): Promise<Finding> {
  const reason = whyNotApplicable(input);
  if (reason !== null) return { notApplicable: reason };
  await using project = await Project.make();
  await lay(project, input);
  for (const [index, step] of input.steps.entries()) {
    const wanted = expected.steps[index];
    if (!wanted) return { difference: `step ${index} has no expected outcome` };
    const ours = await start(project, step, { index, atTerminal: input.interactive });
    if ('refused' in ours && ours.refused.every((kind) => kind === 'not_built'))
      return { notApplicable: 'asks for what this version refuses by name (not built)' };
    const found = compareStep(wanted, ours, await promotedIn(project));
    if (found !== null) return { difference: `step ${index}: ${found}` };
  }
  return null;
}

async function lay(project: Project, { files, harness_store }: InvokeCase): Promise<void> {
  for (const name of ['train.json', 'holdout.json', 'run.toml', 'job.json']) await rm(join(project.root, name));
  for (const [path, text] of Object.entries(files)) {
    if (text === null) continue;
    await project.file(path, text === PLAIN_TEMPLATE ? JSON.stringify(TEMPLATE) : text);
    for (const [, id] of path.endsWith('.json') ? text.matchAll(/"([\w-]+)"/g) : []) await project.task(id ?? '');
  }
  for (const [name, versions] of Object.entries(harness_store))
    for (const [index, runtime] of versions.entries()) {
      await project.harnesses.save({ runtime, kwargs: {} }, { name, key: `version ${index}`, alias: null });
    }
}

async function start(project: Project, step: Step, { index, atTerminal }: { index: number; atTerminal: boolean }): Promise<Ours> {
  const parsed = await parseStart(step.args, project.root);
  if ('refused' in parsed) return { refused: [parsed.refused], exit: EXIT.badInput };
  try {
    const started = await prepareStart(parsed.request, project.root, atTerminal);
    const resolving = project.inputs().resolveRun({ runId: `run-${index}`, executionId: `execution-${index}`, input: started.input });
    const pinned = await resolving.catch(() => null);
    if (pinned !== null)
      return { started, pinned, tasks: await project.records.load(pinned.ref), ...(await engine(project, pinned, step)) };
    const { type, message } = await failureOf(resolving);
    const exit = exitCodeOfReport({ outcome: null, failure: { type: type ?? null, message } }, false);
    return { refused: [/^runDir: /.test(message) ? 'run_dir_used' : message], exit };
  } catch (error) {
    if (error instanceof InputRefused) return { refused: error.problems.map(({ kind }) => kind), exit: error.exitCode };
    throw error;
  }
}

/** How the run ends, as the case says; what a person answers reaches it as the messages that our client sends. */
async function engine(project: Project, pinned: PinnedRun, step: Step): Promise<{ exit: number | 'waits'; failed: boolean }> {
  const { maxUsd } = pinned.plan;
  const { fullyPriced } = await project.inputs().estimateRun({ run: pinned.ref });
  if (needsConfirmation({ yes: pinned.yes, fullyPriced, maxUsd })) return { exit: 'waits', failed: false };
  const end = step.engine ?? 'ok';
  if (end === 'ok' || end === 'rejected') {
    const outcome = end === 'rejected' ? end : await accepted(project, pinned, step);
    return { exit: outcome === 'waits' ? outcome : exitCodeOfReport({ outcome, failure: null }, false), failed: false };
  }
  const type = end === 'value_error' ? 'BadRunInput' : 'Failed';
  return { exit: exitCodeOfReport({ outcome: null, failure: { type, message: end } }, false), failed: true };
}

async function accepted(project: Project, pinned: PinnedRun, { input }: Step): Promise<Outcome | 'waits'> {
  if (!pinned.promote) return 'accepted';
  const yes = yesOrNo(input ?? '', null);
  if (yes === null) return 'waits';
  if (answerTo('promotion', yes)?.extra?.approve !== true) return 'promotion declined';
  const { writeHandoff, promoteAdapter } = createPromotionActivities({
    records: project.records,
    adapters: new VersionStore(join(project.root, 'adapters'), 'adapter'),
    folderOf: project.folderOf,
    settingsPath: join(project.root, 'settings.toml'),
    servingEndpoint: HOSTED_SERVING_ENDPOINT,
  });
  await promoteAdapter({ handoff: await writeHandoff({ run: pinned.ref, weights: WEIGHTS }) });
  return 'promoted';
}

async function promotedIn(project: Project): Promise<unknown> {
  const text = await readFile(join(project.root, 'settings.toml'), 'utf8').catch(() => '');
  return (parse(text) as { models?: { agent?: unknown } }).models?.agent ?? null;
}

/** A run that waits has no exit code yet. Several mistakes are told at once here, so that theirs must be among them. */
function compareStep(wanted: Expected, ours: Ours, promoted: unknown): string | null {
  const { exit, started, error, promoted: wantedPromoted } = wanted;
  const kind = error === undefined ? undefined : (KINDS[error] ?? error);
  if ('refused' in ours) {
    const told = ours.refused.find((one) => one === kind) ?? ours.refused.join(', ');
    return difference({ exit, started, error: kind }, { exit: ours.exit, started: false, error: told });
  }
  const { input } = ours.started;
  const { agent, backend, plan } = ours.pinned;
  const { train, holdout } = ours.tasks;
  const ids = { train: train.map(({ id }) => id), holdout: holdout.map(({ id }) => id) };
  const typed = input.agent;
  return difference(
    { exit, started, error: kind, run_with: wanted.run_with, record: wanted.record, promoted: wantedPromoted },
    {
      exit: ours.exit === 'waits' ? exit : ours.exit,
      started: true,
      error: ours.failed ? 'failed' : undefined,
      run_with: { name: agent.name, ...ids, resume: false, backend, max_usd: plan.maxUsd, cli_agent: typed },
      record: {
        agent: typed,
        backend,
        seed_version: agent.ref === 'builtin' ? null : Number(agent.ref.slice(1)),
        train_task_ids: ids.train,
        holdout_task_ids: ids.holdout,
      },
      promoted,
    },
  );
}
