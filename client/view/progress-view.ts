import { createLogUpdate } from 'log-update';
import type { Console } from '../console.ts';
import type { Snapshot } from '../follow.ts';
import { liveLines } from './live.ts';
import { PlainProgress } from './plain-progress.ts';
import { waitText } from './wait-text.ts';

/** Shows a followed run: redrawn lines at a terminal, occasional lines otherwise, and with `--json` only what waits for a person. */
export type ProgressView = {
  show(snapshot: Snapshot): void;
  /** A remark of the stack, e.g. a process that was started again; kept above redrawn lines. */
  remark(text: string): void;
  /** Leaves what is shown standing and gives the terminal free, for a question or the end. */
  rest(): void;
};

export function openProgressView(console: Console): ProgressView {
  if (console.interactive) return liveView(console);
  return console.json ? waitsOnly(console) : plainView(console);
}

function liveView({ colors }: Console): ProgressView {
  const update = createLogUpdate(process.stdout);
  return {
    show: (snapshot) => update(liveLines(snapshot, colors).join('\n')),
    remark: (text) => update.persist(text),
    rest: () => update.done(),
  };
}

function plainView(console: Console): ProgressView {
  const progress = new PlainProgress(Date.now());
  return {
    show: (snapshot) => {
      for (const line of progress.lines(snapshot, Date.now())) console.print(line);
    },
    remark: (text) => console.print(text),
    rest: () => {},
  };
}

function waitsOnly(console: Console): ProgressView {
  let told: string | null = null;
  return {
    show: ({ status }) => {
      const wait = status?.waitingFor ?? null;
      if (wait && wait.id !== told && status) console.remark(waitText(wait, status.runId));
      told = wait?.id ?? null;
    },
    remark: (text) => console.remark(text),
    rest: () => {},
  };
}
