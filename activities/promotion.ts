import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef } from '../core/ids.ts';
import { HandoffRefused, handoffToml, modelsAgent } from '../core/promotion/handoff.ts';
import { modelCard } from '../core/promotion/model-card.ts';
import type { AdapterRecord, GateVerdict, Handoff, SavedWeights, Spend } from '../core/run/results.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { SettingsUnusable, writeModelsAgent, writeSharedModelsAgent } from '../services/stores/agent-settings.ts';
import type { VersionStore } from '../services/stores/version-store.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import { jsonText } from './run-folder.ts';
import type { RunRecords } from './run-records.ts';

export type AdapterOrder = {
  readonly run: BlobRef;
  readonly verdict: GateVerdict;
  readonly weights: SavedWeights;
  readonly handoff: Handoff;
  readonly steps: number;
  readonly spend: Spend & { readonly maxUsd: number | null };
};

export type PromotionDeps = {
  readonly records: RunRecords;
  readonly adapters: VersionStore;
  readonly folderOf: (run: RunPlace) => RunFiles;
  readonly settingsPath: string;
  /** Where machines share the settings; without it the file is all there is. */
  readonly sharedSettings?: ObjectStore;
  /** Where an agent reaches promoted weights. */
  readonly servingEndpoint: string;
};
export type PromotionActivities = ReturnType<typeof createPromotionActivities>;

/** The environment variable an OpenAI-style agent reads its key from. */
const KEY_VARIABLE = 'OPENAI_API_KEY';

export function createPromotionActivities({ records, adapters, folderOf, settingsPath, sharedSettings, servingEndpoint }: PromotionDeps) {
  return {
    /** Writes the handoff to the run's folder, whatever the gate said: rejected weights may still be used by hand. */
    async writeHandoff({ run, weights }: { run: BlobRef; weights: SavedWeights }): Promise<Handoff> {
      const record = await records.load(run);
      const toml = handoffFor(record.config.student.base_model, weights.samplerPath, servingEndpoint);
      const files = folderOf(record);
      await files.write('handoff.toml', toml);
      return { path: `${files.path}/handoff.toml`, toml };
    },

    /** Keeps accepted weights as the next version of the agent's adapter: model card, handoff, and the record of the gate. */
    async writeAdapter({ run, verdict, weights, handoff, steps, spend }: AdapterOrder): Promise<AdapterRecord> {
      const record = await records.load(run);
      const name = record.agent.name;
      const { version, path } = await adapters.save({
        name,
        key: `${record.runId} ${record.executionId}`,
        files: (version) => ({
          'card.md': modelCard({ ...record, name, version, verdict, weights, steps, spend }),
          'handoff.toml': handoff.toml,
          'adapter.json': jsonText({
            runId: record.runId,
            baseModel: record.config.student.base_model,
            branch: record.branch,
            weights,
            verdict,
            spend,
          }),
        }),
      });
      return { name, version, path };
    },

    /** Points the agent at the weights, in the project's settings. */
    async promoteAdapter({ handoff }: { handoff: Handoff }): Promise<{ keyVariable: string }> {
      const writing = sharedSettings
        ? writeSharedModelsAgent(sharedSettings, settingsPath, handoff.toml)
        : writeModelsAgent(settingsPath, handoff.toml);
      await writing.catch((error) => {
        if (error instanceof SettingsUnusable) throw ApplicationFailure.nonRetryable(error.message, 'SettingsUnusable');
        throw error;
      });
      return { keyVariable: KEY_VARIABLE };
    },
  };
}

function handoffFor(baseModel: string, samplerPath: string, endpoint: string): string {
  try {
    return handoffToml(modelsAgent({ samplerPath, baseModel, endpoint }));
  } catch (error) {
    if (error instanceof HandoffRefused) throw ApplicationFailure.nonRetryable(error.message, 'HandoffRefused');
    throw error;
  }
}
