import { stepName } from '../core/run/step-name.ts';
import type { EpisodeScore, TrialSummary } from '../core/run/trial.ts';
import { decodeEpisode } from '../core/tokens/episode-codec.ts';
import { SAMPLED_MARKS, transcript } from '../core/tokens/transcript.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { configuredRenderer } from './configured-renderer.ts';
import type { RunFiles } from './run-files.ts';
import type { RunRecord } from './run-records.ts';

export type SampledTrials = readonly { readonly trial: TrialSummary; readonly score: EpisodeScore | null }[];

/** Writes the first `train.log_sample_rollouts` episodes of a step as a Markdown file that a person can read. */
export async function writeSamples(
  step: number,
  trials: SampledTrials,
  { config }: RunRecord,
  blobs: BlobStore,
  files: RunFiles,
): Promise<void> {
  const chosen = trials.filter(({ trial }) => trial.spans !== null).slice(0, config.train.log_sample_rollouts);
  if (chosen.length === 0) return;
  const { vocabulary } = configuredRenderer(config, config.student.base_model);
  const text = (ids: Int32Array) => Array.from(ids, (id) => vocabulary.idToString(id)).join('');
  const parts = await Promise.all(
    chosen.map(async ({ trial }) => {
      const { spans } = decodeEpisode(await blobs.get(trial.spans as NonNullable<typeof trial.spans>));
      const reward = trial.reward === null ? 'no reward' : `reward ${trial.reward}`;
      return `## ${trial.taskId}\n\n${trial.trialId}: ${reward}, ${trial.stopReason ?? 'no stop reason'}\n\n\`\`\`\`\n${transcript(spans, text)}\n\`\`\`\`\n`;
    }),
  );
  const title = `# Sample episodes of step ${step}\n\nText between ${SAMPLED_MARKS[0]} and ${SAMPLED_MARKS[1]} was sampled by the student.\n`;
  await files.write(`samples-${stepName(step)}.md`, [title, ...parts].join('\n'));
}
