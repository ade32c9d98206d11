import type { LostCall, SentTokens } from '../../core/measures/usage.ts';
import type { LoggedCall } from '../../trainer/service/call-log.ts';

/** A call whose answer the run kept: a span, a scored sequence. */
export type BookedCall = { readonly kind: 'sample' | 'score'; readonly of: string; readonly digest: string; readonly sampled: number };

/** What the run knows of its calls. */
export type RunBooks = {
  readonly sent: SentTokens;
  readonly lost: readonly LostCall[];
  /** Calls whose tokens are kept, one by one. */
  readonly kept: readonly BookedCall[];
  /** Tokens of answers that came and reached no agent: booked, not kept. By trial. */
  readonly unheard: readonly { readonly of: string; readonly prompt: number; readonly sampled: number }[];
  /** Answered first calls of fresh weights, of one token each; their prompts are not kept, only how long they are. */
  readonly firstCalls: readonly { readonly of: string; readonly calls: number; readonly prompt: number }[];
};

export const COUNTERS = ['prompt', 'sampled', 'scored', 'trained'] as const;
export type Counter = (typeof COUNTERS)[number];
export type Tokens = Readonly<Record<Counter, number>>;

export type Reconciliation = {
  /** What the trainer counted. */
  readonly trainer: Tokens;
  /** What the run booked as sent and answered. */
  readonly booked: Tokens;
  /** What the trainer counted of lost calls. */
  readonly lost: Tokens;
  /** Lost calls that the trainer carried out, and those that never reached it. */
  readonly lostCarriedOut: number;
  readonly lostNotCarriedOut: number;
  /** Calls that the trainer carried out and the run knows nothing of. */
  readonly unknownToRun: readonly LoggedCall[];
  /** Calls that the run says were answered and the trainer does not know. */
  readonly unknownToTrainer: readonly { readonly of: string }[];
};

/** Which calls of the trainer a lost call may be. A run probes its weights with forward passes, and books them as training. */
const KINDS_OF_LOST: Readonly<Record<LostCall['kind'], readonly LoggedCall['kind'][]>> = {
  sample: ['sample'],
  score: ['score'],
  train: ['forward_backward', 'forward'],
};

/**
 * Pairs every call that the trainer carried out with what the run knows: first by content with the calls it kept, then by size with
 * the first calls of fresh weights and the calls it lists as lost, then with the answers that reached nobody. What is left on either side is unexplained.
 */
export function reconcile(calls: readonly LoggedCall[], books: RunBooks): Reconciliation {
  const counted = calls.filter(({ failed }) => failed === null);
  const open = new Pile(counted.filter(({ kind }) => kind === 'sample' || kind === 'score'));
  const unknownToTrainer: { readonly of: string }[] = books.kept.filter((call) => open.take((logged) => isKept(logged, call)) === null);
  for (const { of, calls: count, prompt } of books.firstCalls)
    for (let n = 0; n < count; n++)
      if (open.take((logged) => logged.kind === 'sample' && logged.prompt === prompt && logged.sampled === 1) === null)
        unknownToTrainer.push({ of });
  // A training call has no digest in the books; those that they count are taken by their sum, below.
  const lostTokens: LoggedCall[] = [];
  let lostNotCarriedOut = 0;
  const trainings = new Pile(counted.filter(({ kind }) => KINDS_OF_LOST.train.includes(kind)));
  let excess = sum(trainings.left, 'trained') - books.sent.trainedTokens;
  for (const lost of books.lost) {
    const pile = lost.kind === 'train' ? trainings : open;
    const carriedOut = lost.kind === 'train' && excess < lost.promptTokens ? null : pile.take((logged) => isLost(logged, lost));
    if (carriedOut === null) lostNotCarriedOut++;
    else lostTokens.push(carriedOut);
    if (carriedOut !== null && lost.kind === 'train') excess -= carriedOut.trained;
  }
  for (const unheard of books.unheard) open.takeAll(unheard);
  return {
    trainer: tokensOf(counted),
    booked: asTokens(books.sent),
    lost: tokensOf(lostTokens),
    lostCarriedOut: lostTokens.length,
    lostNotCarriedOut,
    unknownToRun: open.left,
    unknownToTrainer,
  };
}

/** What the trainer counted and neither the books nor the lost calls explain; all zero when they agree. */
export const unexplained = ({ trainer, booked, lost }: Reconciliation): Tokens =>
  Object.fromEntries(COUNTERS.map((counter) => [counter, trainer[counter] - booked[counter] - lost[counter]])) as Tokens;

const isKept = (logged: LoggedCall, { kind, digest, sampled }: BookedCall) =>
  logged.kind === kind && logged.digest === digest && (kind === 'score' || logged.sampled === sampled);

function isLost(logged: LoggedCall, { kind, promptTokens, sampledTokens }: LostCall): boolean {
  const { prompt, scored, trained, sampled } = logged;
  return KINDS_OF_LOST[kind].includes(logged.kind) && prompt + scored + trained === promptTokens && sampled <= sampledTokens;
}

/** Calls that were not yet paired. */
class Pile {
  readonly left: LoggedCall[];

  constructor(calls: readonly LoggedCall[]) {
    this.left = [...calls];
  }

  take(test: (call: LoggedCall) => boolean): LoggedCall | null {
    const at = this.left.findIndex(test);
    return at < 0 ? null : (this.left.splice(at, 1)[0] ?? null);
  }

  /** Takes calls whose tokens come to exactly these, if there are such; else none. Seldom more than one, so the search is short. */
  takeAll({ prompt, sampled }: { readonly prompt: number; readonly sampled: number }): void {
    const fitting = this.left.filter((call) => call.kind === 'sample' && call.prompt <= prompt && call.sampled <= sampled);
    const found = fitting.length > MOST_UNHEARD ? null : subset(fitting, prompt, sampled);
    for (const call of found ?? []) this.left.splice(this.left.indexOf(call), 1);
  }
}

/** Among more calls than this that nobody kept, a sum says nothing. */
const MOST_UNHEARD = 18;

function subset(calls: readonly LoggedCall[], prompt: number, sampled: number): LoggedCall[] | null {
  if (prompt === 0 && sampled === 0) return [];
  const [first, ...rest] = calls;
  if (first === undefined || prompt < 0 || sampled < 0) return null;
  const withFirst = subset(rest, prompt - first.prompt, sampled - first.sampled);
  return withFirst === null ? subset(rest, prompt, sampled) : [first, ...withFirst];
}

const sum = (calls: readonly Tokens[], counter: Counter) => calls.reduce((total, call) => total + call[counter], 0);
const tokensOf = (calls: readonly Tokens[]) => Object.fromEntries(COUNTERS.map((counter) => [counter, sum(calls, counter)])) as Tokens;
const asTokens = ({ promptTokens, sampledTokens, scoredTokens, trainedTokens }: SentTokens): Tokens => ({
  prompt: promptTokens,
  sampled: sampledTokens,
  scored: scoredTokens,
  trained: trainedTokens,
});
