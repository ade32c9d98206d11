import { isTinyModel, type RunConfig } from '../config/index.ts';
import type { FoundAgent } from './agent-program.ts';

/** What a run's config asks of its agent that the agent cannot do, by the config's field; null when it can do all. */
export function agentMisfit({ name, runtime }: FoundAgent, { rollout }: Pick<RunConfig, 'rollout'>): string | null {
  if (!rollout.compaction || runtime !== 'turn') return null;
  const told = name === 'turn' ? 'the agent turn' : `the agent ${name}, which runs on turn,`;
  return `rollout.compaction is true, and ${told} cannot summarise its history: set it to false, or use another agent, e.g. pi`;
}

/** What is allowed but worth knowing of an agent and a config. */
export function agentWarnings({ name, runtime }: FoundAgent, { student }: Pick<RunConfig, 'student'>): string[] {
  if (runtime !== 'terminus-2' || !isTinyModel(student.base_model)) return [];
  return [
    `the context of ${student.base_model} does not hold the first message of agent ${name}: each of its trials ends as an overflow; use the agent turn`,
  ];
}
