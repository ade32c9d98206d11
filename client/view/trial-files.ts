import type { KeptFiles } from '../../services/blobs/trial-files.ts';
import { type BundledFile, contentOf, type TrialBundle } from '../../services/harbor/index.ts';
import type { Colors } from '../console.ts';
import { bytes, count } from './format.ts';
import { table } from './table.ts';

/** Trials whose files are kept, one a line. */
export function trialsTable(kept: readonly KeptFiles[], colors: Colors): string {
  const rows = kept.map((trial) => [trial.trialId, trial.taskId, trial.who, plain(outcomeOf(trial)), bytes(trial.bytes)]);
  return table(colors, ['trial', 'task', 'who', 'outcome', 'packed'], rows, 4);
}

const SHOWN_LINES = 30;
/** What says why a trial failed. */
const SHOWN = /^(exception\.txt|trial\.log|verifier\/test-stdout\.txt|steps\/[^/]+\/verifier\/test-stdout\.txt)$/;

/** How the trial ended, what it left, and the ends of the files that say why. */
export function trialText(kept: KeptFiles, { files, leftOut }: TrialBundle, colors: Colors): string {
  const message = kept.exceptionMessage === null ? [] : [plain(kept.exceptionMessage)];
  const rows = files.map((file) => [plain(file.path).replaceAll('\n', ' '), NOTES[file.leftOut ?? 'whole'], count(file.size)]);
  const more = leftOut > 0 ? [`${count(leftOut)} more entries were not kept: links, pipes, or too many`] : [];
  const head = [`${colors.bold(kept.trialId)}: ${kept.taskId}, ${kept.who}, ${plain(outcomeOf(kept))}`, ...message, ''];
  const shown = files
    .filter(({ path, size }) => SHOWN.test(path) && size > 0)
    .map((file) => `\n${colors.dim(`— ${file.path} —`)}\n${endOf(file)}`);
  return [...head, table(colors, ['file', '', 'bytes'], rows, 2), ...more, ...shown].join('\n');
}

const NOTES = { whole: '', tokens: 'without tokens', middle: 'without its middle' };

function outcomeOf({ executed, reward, exceptionType, stopReason }: KeptFiles): string {
  const ended = exceptionType ?? stopReason;
  return `${executed ? `reward ${reward}` : 'infra-failed'}${ended ? `, ${ended}` : ''}`;
}

function endOf(file: BundledFile): string {
  const lines = plain(contentOf(file).toString('utf8')).trimEnd().split('\n');
  return lines.slice(-SHOWN_LINES).join('\n');
}

/** Without what could make a terminal do something: a trial's programs may have written it for that. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must go
const plain = (text: string) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
