import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { overrideToml } from '../../client/demo/overrides.ts';
import type { StartInput } from '../../core/run/start-input.ts';
import { DEFAULT_DIR, generateQuickstart } from '../../examples/quickstart/generate.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

/** Steps beside those that the kills need: enough to learn. */
const STEPS_BESIDE = 8;
/** The run goes on while one kill is waited for and gotten over. */
const STEPS_A_KILL = 1.25;

export const stepsFor = (kills: number): number => STEPS_BESIDE + Math.ceil(STEPS_A_KILL * kills);

/** The quickstart, as long as the kills need, with small steps, states saved often, and no guard that would end a run of this length. */
export function chaosInput(steps: number): StartInput {
  const { trainIds, holdoutIds } = generateQuickstart(join(PROJECT_ROOT, DEFAULT_DIR));
  const changes = {
    'train.steps': steps,
    'train.tasks_per_batch': 16,
    'train.learning_rate': '3e-3',
    'train.save_state_every': 4,
    'gate.k': 2,
    'gate.min_teacher_fraction': 0.5,
    'tripwire.enabled': false,
    'budget.max_usd': '1000.0',
  };
  const overrides = Object.entries(changes).map(([key, value]) => ({ key, value: `${value}` }));
  const example = readFileSync(join(PROJECT_ROOT, 'examples', 'quickstart', 'run.toml'), 'utf8');
  return { agent: 'turn', config: overrideToml(example, overrides), taskIds: [...trainIds], holdoutTaskIds: [...holdoutIds], yes: true };
}

/** Most tokens that one call of the run samples, and its longest sequence. */
export const LIMITS = { maxTokensPerCall: 28, contextTokens: 192 };
