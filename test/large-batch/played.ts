import { openBook } from '../../activities/paid-calls.ts';
import { recordedSampler } from '../../activities/recorded-sampler.ts';
import type { RunRecord } from '../../activities/run-records.ts';
import type { Project } from '../../activities/testing/project.ts';
import { type Outcome, summarize } from '../../activities/trial-summary.ts';
import type { PublishedSampler, TrialSpec, TrialSummary } from '../../core/run/trial.ts';
import { type ChatRenderer, type Gateway, type GatewaySession, rendererFor, type TokenSampler } from '../../services/gateway/index.ts';

/** The ids of a character lie this far apart, so that they are as large as those of a real vocabulary. */
const SPREAD = 1171;
export const VOCABULARY = 128 * SPREAD;
export const idsOf = (text: string): Int32Array => Int32Array.from(text, (char) => char.charCodeAt(0) * SPREAD);

/** The tiny model's template with large ids. */
function largeIds(): ChatRenderer {
  const tiny = rendererFor({ name: 'stillroom_tiny' });
  const spread = (ids: Int32Array) => ids.map((id) => id * SPREAD);
  return {
    ...tiny,
    stopTokens: tiny.stopTokens.map((id) => id * SPREAD),
    vocabulary: {
      size: VOCABULARY,
      idToString: (id) => String.fromCharCode(id / SPREAD),
      bytesOf: (id) => tiny.vocabulary.bytesOf(id / SPREAD),
    },
    tokenize: async (text) => spread(await tiny.tokenize(text)),
    render: async (messages, options) => spread(await tiny.render(messages, options)),
    extend: async (request) => {
      const extension = await tiny.extend(request);
      return 'delta' in extension ? { delta: spread(extension.delta) } : extension;
    },
    parse: (sampled, context) =>
      tiny.parse(
        sampled.map((id) => id / SPREAD),
        context,
      ),
  };
}

export type Play = {
  readonly project: Project;
  readonly record: RunRecord;
  readonly gateway: Gateway;
  readonly sampler: TokenSampler;
  readonly model: PublishedSampler;
};

const OUTCOME: Outcome = {
  reward: 1,
  executed: true,
  passed: true,
  retry: 'never',
  exceptionType: null,
  exceptionMessage: null,
  infraReason: null,
  fault: null,
  setAside: null,
  stopReason: 'submitted',
  gradedScore: null,
  totalMs: 1,
};

/**
 * A trial whose agent shows the model these observations, one after the other: over HTTP to the gateway, through the book of its calls, to
 * the summary that goes into history.
 */
export async function played(
  { project, record, gateway, sampler, model }: Play,
  { run, trialId }: Pick<TrialSpec, 'run' | 'trialId'>,
  observations: readonly string[],
): Promise<TrialSummary> {
  const calls = await openBook(project.objects, record.runId, { of: trialId, kind: 'sample' });
  const never = new AbortController().signal;
  const options = { calls, trialId, who: 'student', model: model.path, isUsable: () => true, drain: never, signal: never } as const;
  await using session = gateway.open({
    trialId,
    modelName: model.model,
    sampler: recordedSampler(sampler, options),
    renderer: largeIds(),
    contextLimitTokens: record.config.rollout.context_budget_tokens,
    maxTokensPerCall: record.config.sampling.max_tokens,
    temperature: 1,
  });
  await converse(session, observations);
  const task = { id: 'copy', path: 'tasks/copy', digest: 'sha256:copy' };
  const spec = { run, trialId, task, who: 'student', model, maxTurns: observations.length, trains: true } as const;
  return calls.finish(await summarize(record, spec, OUTCOME, session.record(), calls, project.blobs));
}

async function converse(session: GatewaySession, observations: readonly string[]): Promise<void> {
  const messages: object[] = [];
  for (const content of observations) {
    messages.push({ role: 'user', content });
    const response = await fetch(`${session.apiBase}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'large', messages }),
    });
    if (!response.ok) throw new Error(`the gateway answered ${response.status}: ${await response.text()}`);
    const { choices } = (await response.json()) as { choices: readonly { readonly message: object }[] };
    messages.push(choices[0]?.message ?? {});
  }
}
