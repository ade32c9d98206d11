import { expect, it } from 'vitest';
import { parseRunConfig } from '../config/index.ts';
import { agentMisfit, agentWarnings } from './agent-fits.ts';
import type { FoundAgent } from './agent-program.ts';

function configOf(student: string, compaction: boolean) {
  const text = `student.base_model = "${student}"\nteacher.model = "t"\nharbor.job_template = "j"\nrollout.compaction = ${compaction}\n`;
  const parsed = parseRunConfig(text, 'run.toml');
  if (!parsed.ok) throw new Error('the config of this test is wrong');
  return parsed.config;
}
const agent = (runtime: 'turn' | 'terminus-2', name: string): FoundAgent => ({ runtime, name, ref: 'v1', kwargs: {}, env: {} });

it('only the turn agent cannot compact', () => {
  const compacting = configOf('s', true);
  expect(agentMisfit(agent('terminus-2', 'pi'), compacting)).toBeNull();
  expect(agentMisfit(agent('turn', 'turn'), configOf('s', false))).toBeNull();
  expect(agentMisfit(agent('turn', 'mine'), compacting)).toMatch(
    /^rollout\.compaction is true, and the agent mine, which runs on turn, cannot/,
  );
});

it('warns of an agent whose first message the tiny models cannot hold', () => {
  const tiny = configOf('stillroom/tiny-student', false);
  expect(agentWarnings(agent('terminus-2', 'pi'), tiny)).toEqual([expect.stringContaining('use the agent turn')]);
  expect(agentWarnings(agent('turn', 'turn'), tiny)).toEqual([]);
  expect(agentWarnings(agent('terminus-2', 'pi'), configOf('s', false))).toEqual([]);
});
