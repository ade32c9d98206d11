import type { BlobRef } from '../core/ids.ts';
import { stepName } from '../core/run/step-name.ts';
import type { EpisodeScore, TrialSummary } from '../core/run/trial.ts';
import { decodeEpisode } from '../core/tokens/episode-codec.ts';
import { SAMPLED_MARKS, transcript } from '../core/tokens/transcript.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { ChatRenderer } from '../services/gateway/index.ts';
import type { RendererOf } from './renderers.ts';
import type { RunFiles } from './run-files.ts';
import type { RunRecord } from './run-records.ts';

export type SampledTrials = readonly { readonly trial: TrialSummary; readonly score: EpisodeScore | null }[];
type Kept = TrialSummary & { readonly spans: BlobRef };

export type SamplesDeps = { readonly blobs: BlobStore; readonly files: RunFiles; readonly rendererOf: RendererOf };

/** Writes the first `train.log_sample_rollouts` episodes of a step as a Markdown file that a person can read. */
export async function writeSamples(step: number, trials: SampledTrials, record: RunRecord, deps: SamplesDeps): Promise<void> {
  const { train, student } = record.config;
  const chosen = trials
    .map(({ trial }) => trial)
    .filter((trial): trial is Kept => trial.spans !== null)
    .slice(0, train.log_sample_rollouts);
  if (chosen.length === 0) return;
  // A worker that cannot read the ids says so in their place: the step is closed all the same.
  const text = await deps.rendererOf(record, student.base_model).then(textOf, (error: Error) => () => `(no text: ${error.message})`);
  const parts = await Promise.all(chosen.map((trial) => sampleText(trial, text, deps.blobs)));
  const title = `# Sample episodes of step ${step}\n\nText between ${SAMPLED_MARKS[0]} and ${SAMPLED_MARKS[1]} was sampled by the student.\n`;
  await deps.files.write(`samples-${stepName(step)}.md`, [title, ...parts].join('\n'));
}

async function sampleText(trial: Kept, text: (ids: Int32Array) => string, blobs: BlobStore) {
  const { trialId, taskId, reward, stopReason, fragmentCauses } = trial;
  const { spans } = decodeEpisode(await blobs.get(trial.spans));
  const graded = reward === null ? 'no reward' : `reward ${reward}`;
  const split = Object.entries(fragmentCauses).map(([cause, count]) => `${count} × ${cause}`);
  const ended = [graded, stopReason ?? 'no stop reason', ...(split.length > 0 ? [`split: ${split.join(', ')}`] : [])].join(', ');
  const written = transcript(spans, text);
  const fence = '`'.repeat(Math.max(4, 1 + longestRun(written)));
  return `## ${taskId}\n\n${trialId}: ${ended}\n\n${fence}\n${written}\n${fence}\n`;
}

/** Of whole stretches, since a character may be spread over several ids. */
const textOf =
  ({ vocabulary }: ChatRenderer) =>
  (ids: Int32Array) =>
    Buffer.concat(Array.from(ids, (id) => vocabulary.bytesOf(id))).toString('utf8');

/** Back quotes in a row: what stands around them must have more. */
const longestRun = (text: string) => Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
