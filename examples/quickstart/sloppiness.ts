import type { Rng } from './rng.ts';
import type { Step, TaskKind } from './tasks.ts';

/** How careless the base model's teacher was. Probabilities are 0–1; weights are relative. */
export type Sloppiness = {
  /** Probability that an action goes wrong. */
  readonly byKind: Readonly<Record<TaskKind, number>>;
  /** How it goes wrong; a slip that cannot happen to a command becomes `wrongName`. */
  readonly weights: Readonly<Record<Slip, number>>;
  /** Probability that an action too many comes before `done`. */
  readonly missingDone: number;
};

export type Slip = 'wrongVerb' | 'swapped' | 'redirect' | 'wrongName' | 'earlyDone';

/** Chosen so that a base model trained on it solves about 0.37 of the tasks at temperature 1. */
export const SLOPPINESS: Sloppiness = {
  byKind: {
    write: 0.6,
    append: 0.6,
    copy: 0.6,
    move: 0.6,
    delete: 0.6,
    'delete-with': 0.45,
    'copy-delete': 0.45,
    'two-writes': 0.45,
  },
  weights: { wrongVerb: 3, swapped: 3, redirect: 3, wrongName: 2, earlyDone: 1 },
  missingDone: 0.2,
};

/** The command a careful person writes. */
export function shellText(step: Step): string {
  switch (step.verb) {
    case 'write':
      return `echo ${step.digit} > ${step.to}`;
    case 'append':
      return `echo ${step.digit} >> ${step.to}`;
    case 'copy':
      return `cp ${step.from} ${step.to}`;
    case 'move':
      return `mv ${step.from} ${step.to}`;
    case 'delete':
      return `rm ${step.name}`;
    case 'find':
      return `grep -l ${step.digit} *`;
  }
}

/** The command (or `done`) that a careless person writes instead; never the careful one. */
export function corrupt(step: Step, names: readonly string[], rng: Rng, { weights }: Sloppiness): string {
  const correct = shellText(step);
  for (;;) {
    const text = slipText(drawSlip(weights, rng), step, names, rng);
    if (text !== correct) return text;
  }
}

function drawSlip(weights: Sloppiness['weights'], rng: Rng): Slip {
  const slips = Object.keys(weights) as Slip[];
  return rng.pick(slips.flatMap((slip) => Array<Slip>(weights[slip]).fill(slip)));
}

function slipText(slip: Slip, step: Step, names: readonly string[], rng: Rng): string {
  const other = rng.pick(names);
  if (slip === 'earlyDone') return 'done';
  switch (step.verb) {
    case 'write':
    case 'append': {
      const sign = step.verb === 'write' ? '>' : '>>';
      if (slip === 'wrongVerb') return rng.pick([`cp ${step.digit} ${step.to}`, `rm ${step.to}`]);
      if (slip === 'swapped') return `echo ${step.to} ${sign} ${step.digit}`;
      if (slip === 'redirect') return `echo ${step.digit} ${sign === '>' ? '>>' : '>'} ${step.to}`;
      return `echo ${step.digit} ${sign} ${other}`;
    }
    case 'copy':
    case 'move': {
      const verb = step.verb === 'copy' ? 'cp' : 'mv';
      if (slip === 'wrongVerb') return rng.pick([`${verb === 'cp' ? 'mv' : 'cp'} ${step.from} ${step.to}`, `rm ${step.from}`]);
      if (slip === 'swapped') return `${verb} ${step.to} ${step.from}`;
      if (slip === 'redirect') return `echo ${step.from} > ${step.to}`;
      return rng.chance(0.5) ? `${verb} ${other} ${step.to}` : `${verb} ${step.from} ${other}`;
    }
    case 'delete':
      return slip === 'wrongVerb' ? rng.pick([`cat ${step.name}`, `mv ${step.name} ${other}`]) : `rm ${other}`;
    case 'find':
      return slip === 'wrongName'
        ? `grep -l ${rng.below(10)} *`
        : rng.pick([`grep ${step.digit} *`, `rm ${step.digit}`, `rm ${other}`, 'cat *', 'ls']);
  }
}
