import { condition, continueAsNew, defineQuery, defineSignal, executeChild, proxyActivities, setHandler } from '@temporalio/workflow';

/** Workflows that do nothing but hand a value on, for tests of what passes. */
export type Made = 'a NaN' | 'an infinity' | 'too much' | 'much';

export type Passing = { give(made: Made): Promise<unknown>; take(value: unknown): Promise<string> };

const { give, take } = proxyActivities<Passing>({ startToCloseTimeout: '10s' });

export const valueQuery = defineQuery<unknown>('value');
export const endSignal = defineSignal('end');

/** 600 KB, or somewhat more than may pass; in characters of two bytes. */
const CHARACTERS = { much: 300_000, 'too much': 530_000 } as const;

export function make(made: Made): unknown {
  if (made === 'a NaN') return { rows: [{ loss: 1 }, { loss: 0 / 0 }] };
  if (made === 'an infinity') return { rows: [{ loss: 1 }, { loss: -1 / 0 }] };
  return { text: 'é'.repeat(CHARACTERS[made]) };
}

export const intoActivity = (made: Made): Promise<unknown> => take(make(made));
export const outOfActivity = async (made: Made): Promise<number> => JSON.stringify(await give(made)).length;
export const intoChild = (made: Made): Promise<unknown> => executeChild('ends', { args: [make(made)] });
export const outOfChild = async (made: Made): Promise<unknown> => JSON.stringify(await executeChild(returns, { args: [made] })).length;
export const intoNext = (made: Made): Promise<unknown> => continueAsNew<(value: unknown) => Promise<string>>(make(made));

export const ends = async (): Promise<string> => 'ended';
export const returns = async (made: Made): Promise<unknown> => make(made);

/** Answers the query until it is told to end. */
export async function answers(made: Made): Promise<string> {
  let over = false;
  setHandler(valueQuery, () => make(made));
  setHandler(endSignal, () => {
    over = true;
  });
  await condition(() => over);
  return 'ended';
}
