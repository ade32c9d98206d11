import { setHandler } from '@temporalio/workflow';
import { z } from 'zod';
import { SweepCheckpoints } from '../core/run/decision.ts';
import type { CheckpointsView } from '../core/training/checkpoint-view.ts';
import { checkpointsQuery, sweepCheckpointsUpdate } from './messages.ts';
import type { Run } from './run.ts';

/** Shows what a run saved, and deletes what it does not need when a person says so. */
export function answerAboutCheckpoints(run: Run): void {
  setHandler(checkpointsQuery, (asked) => run.keeping.view(asked?.keepLast));
  setHandler(sweepCheckpointsUpdate, (input) => sweep(run, input), { validator: (input) => check(run, input) });
}

/** @throws with the reason when the message is malformed or does not fit the state of the run */
function check({ facts }: Run, input: unknown): void {
  const parsed = SweepCheckpoints.safeParse(input);
  if (!parsed.success) throw new Error(`sweepCheckpoints: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
  if (facts.phase === 'ended') throw new Error('sweepCheckpoints: the run has ended');
  if (lastToKeep(facts, parsed.data) === null)
    throw new Error('sweepCheckpoints: say how many of the last ones to keep (keepLast); the config does not');
}

const lastToKeep = ({ pinned }: Run['facts'], { keepLast }: SweepCheckpoints): number | null =>
  keepLast ?? pinned?.plan.checkpoints.keepLast ?? null;

async function sweep(run: Run, input: SweepCheckpoints): Promise<CheckpointsView> {
  const { by, via = 'temporal', reason } = input;
  const last = lastToKeep(run.facts, input);
  if (last === null) throw new Error('the check lets no message through without a number');
  const swept = await run.keeping.sweep(last);
  run.note(`checkpoints swept by ${by} through ${via}, all but the last ${last} and what is needed${reason ? `: ${reason}` : ''}`);
  return swept;
}
