import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exitCodeOf } from '../../../client/exit-codes.ts';
import { InputRefused, Problems } from '../../../client/input/problems.ts';
import { unboundedSpend } from '../../../client/input/spend.ts';
import { readTaskIds } from '../../../client/input/task-ids.ts';
import { answerTo } from '../../../client/questions.ts';
import { parseRunConfig } from '../../../core/config/parse.ts';
import { type CapacityProblem, onCapacityProblem } from '../../../core/e2b/capacity.ts';
import { estimateCost } from '../../../core/estimate/cost.ts';
import { METERS } from '../../../core/measures/meters.ts';
import { isBounded, needsConfirmation } from '../../../core/run/cost-confirmation.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { invoke } from './cli-invoke.ts';
import { type Sections, toToml } from './sections.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

type ConfirmCase = { any_meter_unpriced: boolean; max_usd: number | null; yes: boolean; terminal: boolean; answer: boolean | null };
/** A run that waits for a person who is not at this terminal has started. */
function confirm(input: ConfirmCase, expected: unknown): Finding {
  const sections: Sections = {
    pricing: input.any_meter_unpriced ? {} : Object.fromEntries(METERS.map((meter) => [meter, 1])),
    budget: input.max_usd === null ? {} : { max_usd: input.max_usd },
  };
  const parsed = parseRunConfig(toToml(sections), 'run.toml');
  if (!parsed.ok) return { difference: JSON.stringify(parsed.errors), refused: true };
  const [config, sizes] = [parsed.config, { nTrain: 1, nHoldout: 1 }];
  if (!input.terminal && unboundedSpend(config, sizes) !== null)
    return compare(expected, { outcome: 'refused', asked: false, default_answer: null });
  const cost = { fullyPriced: estimateCost(config, sizes).fullyPriced, maxUsd: config.budget.max_usd };
  const asked = needsConfirmation({ ...cost, yes: input.yes }) && input.terminal;
  const byDefault = asked ? isBounded(cost) : null;
  const message = asked ? answerTo('cost', input.answer ?? isBounded(cost))?.name : null;
  const outcome = message === 'declineCost' ? `declined_exit_${exitCodeOf('declined', false)}` : 'starts';
  return compare(expected, { outcome, asked, default_answer: byDefault });
}

/** Failures to look up the capacity that are ours to mend; every other is the API's. */
const PROBLEMS: Readonly<Record<string, CapacityProblem>> = {
  sdk_missing: 'no_client',
  bad_cap_setting: 'bad_cap',
  credential_rejected: 'credential_rejected',
};
const VERDICTS = { refuse: 'refused', warn: 'warns_and_starts' } as const;
function capacityError({ error }: { error: string }, expected: unknown): Finding {
  return compare(expected, { outcome: VERDICTS[onCapacityProblem(PROBLEMS[error] ?? 'api_error')] });
}

async function taskIds({ text }: { text: string | null }, expected: unknown): Promise<Finding> {
  const folder = await mkdtemp(join(tmpdir(), 'vector-ids-'));
  try {
    const [path, problems] = [join(folder, 'ids.json'), new Problems()];
    if (text !== null) await writeFile(path, text);
    const ids = await readTaskIds(path, '--tasks', problems);
    problems.throwIfAny();
    return compare(expected, { task_ids: ids });
  } catch (error) {
    if (!(error instanceof InputRefused)) throw error;
    return compare(expected, { error: error.problems.map(({ kind }) => kind.replace('task_ids_', '')).join(', ') });
  } finally {
    await rm(folder, { recursive: true });
  }
}

export const cli: FamilyAdapter = { family: 'cli', kinds: { invoke, confirm, capacity_error: capacityError, task_ids: taskIds } };
