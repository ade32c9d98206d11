import { PHASES } from '../../core/run/phase.ts';
import type { RunStatus, TrialProgress } from '../../workflows/messages.ts';
import type { Colors } from '../console.ts';
import type { Snapshot } from '../follow.ts';
import { evaluationText } from './evaluations-table.ts';
import { bar, number, usd } from './format.ts';
import { heldUpText } from './held-up-text.ts';
import { learned } from './row-text.ts';
import { spendText } from './spend-text.ts';
import { waitText } from './wait-text.ts';

const BAR_WIDTH = 24;

/** The lines that a terminal shows of a running run; they are drawn again with each snapshot. */
export function liveLines({ status, progress, heldUp, trouble }: Snapshot, colors: Colors): string[] {
  const line = (label: string, text: string) => `  ${colors.dim(label.padEnd(10))} ${text}`;
  if (!status) return [line('run', trouble ?? 'starting')];
  return [
    line('phase', phases(status, colors)),
    ...(status.warmup ? [line('warm-up', warmup(status.warmup))] : []),
    line('steps', `${bar(status.step, status.steps, BAR_WIDTH)} ${status.step}/${status.steps}`),
    line('trials', progress ? trials(progress) : '–'),
    line('learning', learning(status)),
    line('spend', spendText(status.spend)),
    ...(progress && progress.reservedUsd > 0 ? [line('', reserved(progress))] : []),
    ...(status.evaluations.length > 0 ? [line('held out', status.evaluations.map(evaluationText).join(' · '))] : []),
    ...status.interim.slice(-1).map((newest) => line('interim', `${evaluationText(newest)} on training tasks`)),
    ...status.notices.slice(-2).map((notice) => line('note', colors.yellow(notice))),
    ...heldUp.map((one) => line('held up', colors.yellow(heldUpText(one)))),
    ...(status.waitingFor
      ? waitText(status.waitingFor, status.runId)
          .split('\n')
          .map((text) => `  ${colors.bold(text)}`)
      : []),
    ...(trouble ? [line('trouble', colors.red(trouble))] : []),
  ];
}

function phases(status: RunStatus, colors: Colors): string {
  const now = PHASES.indexOf(status.phase);
  const next = PHASES.slice(now + 1).find((phase) => phase !== 'warmup' || status.warmup !== null);
  return `${colors.bold(status.outcome ?? status.phase)}${next && next !== 'ended' ? colors.dim(`  then ${next}`) : ''}`;
}

function warmup({ updates, steps, lossNatsPerToken }: NonNullable<RunStatus['warmup']>): string {
  return `${bar(updates, steps, BAR_WIDTH)} ${updates}/${steps} updates · loss ${number(lossNatsPerToken)} nats/token`;
}

/** `███░░░ 93/128 of step 4, 8 running, solved 40/92`: the trials that are under way, with what came of those that ended. */
function trials({ label, trials, done, running, executed, passed, infraFailed, failing }: TrialProgress): string {
  const failed = infraFailed > 0 ? `, ${infraFailed} infra-failed` : '';
  const why = failing && failing.inARow > 1 ? `; the last ${failing.inARow} for one cause: ${oneLine(failing.words)}` : '';
  return `${bar(done, trials, BAR_WIDTH)} ${done}/${trials} of ${label}, ${running} running, solved ${passed}/${executed}${failed}${why}`;
}

const oneLine = (words: string) => words.replace(/\s+/g, ' ').slice(0, 120);

/** Of the child that runs now; the run itself books it when it ends. */
function reserved({ spentUsd, reservedUsd }: TrialProgress): string {
  return `with the trials of now ${usd(spentUsd)} · set aside ${usd(reservedUsd)}`;
}

function learning({ lastRow }: RunStatus): string {
  if (!lastRow) return 'no step is done yet';
  return `step ${lastRow.step}: ${learned(lastRow)}`;
}
