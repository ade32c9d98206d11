import type { Command } from 'commander';
import type { DecisionRecord, MessageName } from '../../core/run/decision.ts';
import type { Wait } from '../../core/run/phase.ts';
import type { Console } from '../console.ts';
import { positiveNumber } from '../input/number.ts';
import type { RunClient } from '../run-client.ts';
import { withRun } from '../session.ts';
import { addCommand, run } from './command.ts';
import { addDeciding, type Deciding, decisionOf } from './deciding.ts';

type Options = Deciding & { readonly json?: boolean; readonly waitId?: string };

/** A message as a command: what it sends, which question it answers, and the rest of its input. */
type Answer = { readonly command: string; readonly about: string; readonly message: MessageName; readonly to?: Wait['kind'] };

const ANSWERS: readonly (Answer & { readonly extra?: Record<string, unknown> })[] = [
  { command: 'confirm', about: 'confirm the cost, so that the run starts to spend', message: 'confirmCost', to: 'cost' },
  { command: 'decline', about: 'decline the cost; the run ends as declined', message: 'declineCost', to: 'cost' },
  { command: 'continue', about: 'train although the teacher is not better beyond noise', message: 'continueAnyway', to: 'teacher' },
  { command: 'approve', about: 'promote the accepted weights', message: 'decidePromotion', to: 'promotion', extra: { approve: true } },
  { command: 'reject', about: 'do not promote them', message: 'decidePromotion', to: 'promotion', extra: { approve: false } },
  { command: 'pause', about: 'pause before the next piece of work', message: 'pause' },
  { command: 'resume', about: 'go on after a pause, or when the service was paid', message: 'resume' },
  { command: 'stop', about: 'save what there is, then end the run as stopped', message: 'stop' },
];

/** Adds the commands that tell a run something. Each is an update: the run records it or refuses it with the reason. */
export function addAnswers(program: Command): void {
  for (const answer of ANSWERS) {
    const command = addDeciding(addCommand(program, `${answer.command} <run>`, answer.about));
    if (answer.to) command.option('--wait-id <id>', 'the question that is answered; default: the open one');
    command.action(run<Options, [string]>((console, options, runId) => answerRun(console, runId, answer, options, answer.extra ?? {})));
  }
  addDeciding(addCommand(program, 'budget <run>', 'set the cap of the whole run; a run that waits at its cap goes on'))
    .argument('<usd>', 'dollars, above what is spent', positiveNumber)
    .action(
      run<Options, [string, number]>((console, options, runId, maxUsd) =>
        answerRun(console, runId, { command: 'budget', about: '', message: 'setBudget' }, options, { maxUsd }),
      ),
    );
}

async function answerRun(console: Console, runId: string, answer: Answer, options: Options, extra: Record<string, unknown>) {
  const record = await withRun(runId, async (found) => {
    await found.state(); // an unknown run is said at once, even without a worker
    const waitId = options.waitId ?? (await openWait(found, answer.to));
    return found.send(answer.message, { ...decisionOf(options, waitId), ...extra });
  });
  console.result(record);
  console.print(recordedText(runId, record));
  return 0;
}

/** The open question, so that this answer cannot hit the next one. Without one the run itself says why there is nothing to answer. */
async function openWait(found: RunClient, kind: Wait['kind'] | undefined): Promise<string | undefined> {
  if (kind === undefined) return undefined;
  const { waitingFor } = await found.status();
  return waitingFor?.kind === kind ? waitingFor.id : undefined;
}

function recordedText(runId: string, record: DecisionRecord): string {
  const answer = record.answer === null ? '' : ` ${record.answer}`;
  const wait = record.waitId === null ? '' : `, answers ${record.waitId}`;
  return `${runId}: ${record.message}${answer} recorded, by ${record.by} at ${record.at}${wait}`;
}
