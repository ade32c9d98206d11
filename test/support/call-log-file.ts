import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { z } from 'zod';
import type { SentTokens } from '../../core/measures/usage.ts';
import type { LoggedCall } from '../../trainer/service/call-log.ts';

const count = z.number().int().nonnegative();

const Line: z.ZodType<LoggedCall> = z.object({
  at: z.iso.datetime(),
  kind: z.enum(['create', 'load', 'forward', 'forward_backward', 'optim_step', 'save', 'sample', 'score', 'refused']),
  request: z.string(),
  session: z.string(),
  owner: z.string(),
  seq: count,
  weights: z.string().nullable(),
  digest: z.string(),
  prompt: count,
  sampled: count,
  scored: count,
  trained: count,
  failed: z.string().nullable(),
});

/** The trainer's log of the calls that it carried out, read while it is written. */
export class CallLogFile {
  readonly path: string;
  private seenBytes = 0;
  private seenSteps = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** All calls, oldest first. @throws when a line is not what the trainer writes */
  calls(): LoggedCall[] {
    const text = existsSync(this.path) ? readFileSync(this.path, 'utf8') : '';
    return wholeLines(text).map((line) => Line.parse(JSON.parse(line)));
  }

  /** Optimizer steps so far; reads only what is new. */
  optimSteps(): number {
    const text = this.textFrom(this.seenBytes);
    const end = text.lastIndexOf(10) + 1;
    this.seenBytes += end;
    this.seenSteps += wholeLines(text.toString('utf8', 0, end)).filter((line) => line.includes('"kind":"optim_step"')).length;
    return this.seenSteps;
  }

  private textFrom(offset: number): Buffer {
    if (!existsSync(this.path)) return Buffer.alloc(0);
    const fd = openSync(this.path, 'r');
    try {
      const bytes = Buffer.alloc(Math.max(0, fstatSync(fd).size - offset));
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, offset));
    } finally {
      closeSync(fd);
    }
  }
}

const wholeLines = (text: string) =>
  text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean);

/** What calls come to, counted as a run's books count it. */
export function countedTokens(calls: readonly LoggedCall[]): SentTokens {
  const sum = (key: 'prompt' | 'sampled' | 'scored' | 'trained') => calls.reduce((total, call) => total + call[key], 0);
  return { promptTokens: sum('prompt'), sampledTokens: sum('sampled'), scoredTokens: sum('scored'), trainedTokens: sum('trained') };
}
