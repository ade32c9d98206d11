import { join } from 'node:path';
import type { RunConfig } from '../../core/config/index.ts';
import { agentMisfit } from '../../core/run/agent-fits.ts';
import { AgentRefused, findAgent } from '../../core/run/agents.ts';
import { StoredHarness } from '../../core/run/harness-document.ts';
import { openObjectStore } from '../../services/blobs/open.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import { HarnessStore } from '../../services/stores/harness-store.ts';
import { openShelf } from '../../services/stores/open-shelf.ts';
import { StoreDamaged } from '../../services/stores/version-index.ts';
import { StoreError, type StoreProblem } from '../../services/stores/version-refs.ts';
import type { Problem } from './problems.ts';

const KINDS: Readonly<Record<StoreProblem, Problem['kind']>> = {
  invalid_name: 'agent_name',
  invalid_alias: 'agent_version',
  no_such_name: 'agent_unknown',
  no_such_version: 'agent_version',
  no_such_version_or_alias: 'agent_version',
  dangling_alias: 'agent_version',
};

const REFUSALS: Readonly<Record<AgentRefused['kind'], Problem['kind']>> = {
  unknown: 'agent_unknown',
  wrong_runtime: 'agent_runtime',
  no_version: 'agent_version',
};

/** Why the agent cannot be run, as the project's store knows it, or not with this config; null when it can. */
export async function agentProblem(projectRoot: string, agent: string, config: RunConfig | null): Promise<Problem | null> {
  try {
    const found = await findAgent(agent, async (name, ref) => (await openHarnessStore(projectRoot)).load(name, ref));
    const misfit = config === null ? null : agentMisfit(found, config);
    return misfit === null ? null : { kind: 'agent', message: `--agent: ${misfit}` };
  } catch (error) {
    const kind = kindOf(error);
    if (kind === null) throw error;
    return { kind, message: `--agent: ${(error as Error).message}` };
  }
}

/** The stored agents of a project: in its `.stillroom/harnesses`, or where machines share their blobs. */
export async function openHarnessStore(projectRoot: string): Promise<HarnessStore<StoredHarness>> {
  const settings = readAppSettings(projectRoot);
  const objects = await openObjectStore(settings);
  return new HarnessStore(openShelf('harnesses', join(projectRoot, '.stillroom'), settings.blobStore, objects), StoredHarness);
}

function kindOf(error: unknown): Problem['kind'] | null {
  if (error instanceof StoreError) return KINDS[error.kind];
  if (error instanceof StoreDamaged) return 'agent';
  if (error instanceof AgentRefused) return REFUSALS[error.kind];
  return null;
}
