import Table from 'cli-table3';
import type { DriveResults, StepRecord } from '../tinker-drive/recorder.ts';
import { judge, statusOf, type Verdict } from './compare.ts';
import { judgeKnownGood } from './known-good.ts';
import type { Peer } from './peers.ts';

const NO_INNER_LINES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

/** Prints step by step what our client got, what the recording has and how they compare; the number of failures. */
export function report(peer: Peer, ours: DriveResults, recorded: DriveResults): number {
  const find = ({ steps }: DriveResults, name: string) => steps.find(({ step }) => step === name);
  const names = [...new Set([...recorded.steps, ...ours.steps].map(({ step }) => step))];
  const table = new Table({
    head: ['step', 'ours', `recorded (SDK ${recorded.sdk})`, ''],
    chars: NO_INNER_LINES,
    style: { head: [], border: [] },
  });
  const verdicts: Verdict[] = [];
  const remarks: string[] = [];
  for (const name of names) {
    const [mine, theirs] = [find(ours, name), find(recorded, name)];
    const difference = peer.differences[name];
    const { like, likeOwn } = difference ?? {};
    const compared = likeOwn === undefined ? find(recorded, like ?? name) : find(ours, likeOwn);
    const verdict = judge(mine, compared, difference);
    verdicts.push(verdict);
    table.push([name, brief(mine), brief(theirs), verdict.kind]);
    if (verdict.kind !== 'same') remarks.push(`  ${verdict.kind}  ${name}: ${verdict.words}`);
  }
  const knownGood = judgeKnownGood(ours);
  const unused = Object.keys(peer.differences).filter((name) => !names.includes(name));
  console.log(`${table}\n${remarks.join('\n')}\n  untrained model: ${knownGood.kind}, ${knownGood.words}`);
  for (const name of unused) console.log(`  failed  ${name}: listed as different, but no such step`);
  return [...verdicts, knownGood].filter(({ kind }) => kind === 'failed').length + unused.length;
}

type Result = {
  readonly loss_fn_outputs?: readonly { readonly logprobs?: { readonly data: readonly number[] } }[];
  readonly sequences?: readonly { readonly tokens: readonly number[] }[];
  readonly path?: string | null;
  readonly status?: number;
};

/** One cell: the few values that tell most. */
function brief(record: StepRecord | undefined): string {
  if (record === undefined) return '-';
  if (record.error !== undefined) return ['refused', statusOf(record.error)].filter(Boolean).join(' ');
  if (Array.isArray(record.result)) return shortList(record.result);
  if (typeof record.result !== 'object' || record.result === null) return 'ok';
  const { loss_fn_outputs: outputs, sequences, path, status } = record.result as Result;
  if (outputs !== undefined) return shortList(outputs[0]?.logprobs?.data ?? []);
  if (sequences !== undefined) return sequences.map(({ tokens }) => tokens.join(' ')).join('\n');
  if (status !== undefined) return `HTTP ${status}`;
  return path ? path.replace(/^tinker:\/\/[^/]+/, '…') : 'ok';
}

function shortList(values: readonly unknown[]): string {
  const texts = values.slice(0, 3).map((value) => (typeof value === 'number' ? value.toFixed(4) : JSON.stringify(value)));
  return [...texts, ...(values.length > texts.length ? ['…'] : [])].join(' ');
}
