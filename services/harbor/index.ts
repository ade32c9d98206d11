export { type AgentWiring, agentConfig } from './agent-config.ts';
export { type AgentConfig, nopAgent, type TurnAgentOptions, turnAgent } from './agents.ts';
export { availableBytes } from './available-memory.ts';
export { type BundledFile, contentOf, packTrial, type TrialBundle, unpackTrial } from './bundle.ts';
export { composeProblem, containerEngine, type EngineReport, hasSingularity } from './container-engine.ts';
export type { TestCounts } from './ctrf.ts';
export { AGENT_CANNOT_PLAY, dryRunAgent } from './dry-run-agent.ts';
export { type EnvironmentReport, type HarborReport, probeHarbor } from './environments-probe.ts';
export { BadHarborInput, ForeignResult, RunnerDied, TrialCrashed, TrialRefused } from './errors.ts';
export {
  hasNoNetwork,
  type JobTemplate,
  parseJobTemplate,
  readJobTemplate,
  resolveTasks,
  sandboxMode,
  TEMPLATE_KEYS,
} from './job-template.ts';
export { EXCEPTIONS, type ExceptionRow, exceptionRow } from './outcome-table.ts';
export { harborPython } from './python.ts';
export { removeTree } from './remove-tree.ts';
export { type ResidentRunner, residentRunner } from './resident.ts';
export type { TrialTimings } from './result-json.ts';
export { type RolloutTurn, type RolloutTurns, readRolloutTurns } from './rollout-details.ts';
export { HarborRunner, type RunTrialOptions, type TrialRun } from './runner.ts';
export type { RunnerProcessOptions } from './runner-process.ts';
export { checkSandbox, type SandboxCheck, type SandboxProtection } from './sandbox-check.ts';
export { makeScratchDir } from './scratch.ts';
export { sweepSandboxes } from './sweep.ts';
export { openTaskFolder, type TaskFolder, taskContentDigest, taskDigest } from './task-folder.ts';
export { type TerminusAgentOptions, terminusAgent } from './terminus-agent.ts';
export { type TrialConfig, type TrialConfigInput, trialConfig } from './trial-config.ts';
export { NoRoom, TrialFolders, type TrialFoldersOptions } from './trial-folders.ts';
export { type Shortage, TrialMemory, type TrialMemoryOptions } from './trial-memory.ts';
export { readTrial, type TrialFiles, type TrialOutcome, type TrialReading } from './trial-result.ts';
