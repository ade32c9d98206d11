import { join } from 'node:path';
import { createEvaluationActivities } from '../../../activities/evaluation.ts';
import { createInputActivities } from '../../../activities/inputs.ts';
import { createKeptTrialsActivities, readTrials } from '../../../activities/kept-trials.ts';
import { createMetricsActivities } from '../../../activities/metrics.ts';
import { createMirrorActivities } from '../../../activities/mirror.ts';
import { createPromotionActivities } from '../../../activities/promotion.ts';
import { runFiles } from '../../../activities/run-files.ts';
import { RunRecords } from '../../../activities/run-records.ts';
import { tinyRendererOf } from '../../../activities/testing/renderers.ts';
import { scoringMeters } from '../../../core/measures/billing.ts';
import { trialFigures } from '../../../core/measures/trial-figures.ts';
import { NO_USAGE } from '../../../core/measures/usage.ts';
import { seededRandom } from '../../../core/random/seeded.ts';
import { StoredHarness } from '../../../core/run/harness-document.ts';
import { after, trialOf } from '../../../core/run/testing/facts.ts';
import type { TrialSpec } from '../../../core/run/trial.ts';
import { buildDatums, datumLimits } from '../../../core/tokens/datums.ts';
import { decodeEpisode, encodeEpisode } from '../../../core/tokens/episode-codec.ts';
import { decodeScoredEpisode, encodeScoredEpisode } from '../../../core/tokens/scored-codec.ts';
import type { Span } from '../../../core/tokens/span.ts';
import { keepTeacherRow } from '../../../core/tokens/teacher-row.ts';
import { prepareBatch } from '../../../core/training/batch.ts';
import { BlobStore } from '../../../services/blobs/blob-store.ts';
import type { ObjectStore } from '../../../services/blobs/object-store.ts';
import { TaskCache } from '../../../services/harbor/index.ts';
import { GateBook } from '../../../services/stores/gate-book.ts';
import { HarnessStore } from '../../../services/stores/harness-store.ts';
import { VersionStore } from '../../../services/stores/version-store.ts';
import { type AllActivities, fakeActivities } from '../../../test/workflow/fake-activities.ts';

const CALLS = 3;
const SAMPLED_PER_CALL = 20;

/** Everything as it is in a worker, but for trials, teacher and trainer: their answers are made up at once, and what they leave is kept as ever. */
export function world(root: string, objects: ObjectStore): AllActivities {
  const blobs = new BlobStore(objects);
  const records = new RunRecords(blobs);
  const folderOf = runFiles(objects, root);
  const gates = new GateBook(objects);
  const { checkModels, checkSandbox, openTraining, saveSampler, saveState, ...others } = fakeActivities();
  return {
    ...others,
    ...createInputActivities({
      records,
      blobs,
      objects,
      projectRoot: root,
      settings: { runRoot: 'runs', taskQueues: { control: 'control', rollouts: 'rollouts', training: 'training' } },
      tasks: new TaskCache({ dir: join(root, 'tasks-cache'), projectRoot: root }),
      harnesses: new HarnessStore(join(root, 'harnesses'), StoredHarness),
    }),
    ...createKeptTrialsActivities({ records, blobs }),
    ...createMetricsActivities({ records, blobs, objects, folderOf, rendererOf: tinyRendererOf }),
    ...createEvaluationActivities({ records, blobs, objects, folderOf, countGate: (hash, runId) => gates.note(hash, runId) }),
    ...createMirrorActivities({ records, objects, folderOf }),
    ...createPromotionActivities({
      records,
      folderOf,
      adapters: new VersionStore(join(root, 'adapters'), 'adapter'),
      settingsPath: join(root, 'settings.toml'),
      servingEndpoint: 'http://127.0.0.1/oai/api/v1',
    }),
    checkModels,
    checkSandbox,
    openTraining,
    saveSampler,
    saveState,

    async runTrial(spec) {
      const { runId, config } = await records.load(spec.run);
      const spans = spansOf(spec);
      const kept = await blobs.of(runId).put(encodeEpisode({ trial: spec.trialId, spans, stopReason: 'submitted' }));
      const figures = trialFigures(spans, { maxTokens: config.sampling.max_tokens, who: spec.who });
      const passed = spec.who === 'teacher' || spec.model.kind === 'sampler';
      return trialOf({ ...figures, trialId: spec.trialId, taskId: spec.task.id, spans: kept, passed, reward: passed ? 1 : 0, lost: [] });
    },

    async scoreEpisode({ run, trialId, spans, stopReason }) {
      const { runId, config } = await records.load(run);
      const { datums, stats } = buildDatums([{ ...decodeEpisode(await blobs.get(spans)), stopReason }], datumLimits(config));
      const rows = datums.map((datum) => keepTeacherRow(datum, new Float64Array(datum.tokens.length).fill(-0.5)));
      return {
        trialId,
        scored: await blobs.of(runId).put(encodeScoredEpisode({ trial: trialId, datums, rows })),
        candidates: null,
        datums: stats.datums,
        fragments: stats.fragments,
        lossTokens: stats.lossTokens,
        overflowDropped: stats.overflowDrops > 0,
        overlongDropped: stats.overlongDrops > 0,
        ...NO_USAGE,
        usd: 0,
        trainUsd: 0,
        meters: scoringMeters(datums.map(({ tokens }) => ({ tokens: tokens.length, cacheHits: 0 }))),
      };
    },

    async trainBatch({ run, step, trials, training }) {
      const { runId, config } = await records.load(run);
      const played = await readTrials(trials, blobs);
      const scored = await Promise.all(
        played.flatMap(({ score }) => (score?.scored ? [blobs.get(score.scored).then(decodeScoredEpisode)] : [])),
      );
      const batch = { datums: scored.flatMap(({ datums }) => datums), rows: scored.flatMap(({ rows }) => rows), candidates: null };
      const { figures, updates, trainTokens } = prepareBatch(batch, { train: config.train, runName: runId, step });
      return {
        training: after(training, 2 * updates.length),
        notices: [],
        trained: { ...figures, losses: updates.map(() => 1), gradNorms: updates.map(() => 1) },
        ...NO_USAGE,
        meters: { student_train: trainTokens },
        wallMs: 1,
      };
    },
  };
}

/** Calls of a trial, each prompt going on where the last answer ended. */
function spansOf({ trialId, model }: TrialSpec): Span[] {
  const random = seededRandom(BigInt([...trialId].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1e9, 7)));
  const some = (count: number) => Array.from({ length: count }, () => random.below(128));
  let seen = some(60);
  return Array.from({ length: CALLS }, (_, callIndex) => {
    const prompt = Int32Array.from(seen);
    const sampled = Int32Array.from(some(SAMPLED_PER_CALL));
    seen = [...seen, ...sampled, ...some(8)];
    const logprobs = Float64Array.from(sampled, () => -random.below(1000) / 500);
    return { callIndex, prompt, sampled, logprobs, stop: 'stop', sampler: model.version };
  });
}
