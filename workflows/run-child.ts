import { CancellationScope, ChildWorkflowCancellationType, condition, ParentClosePolicy } from '@temporalio/workflow';
import { capSignal } from './messages.ts';
import { type Run, RunStopped } from './run.ts';

/** A child that was started. */
export type ChildHandle<R> = {
  readonly workflowId: string;
  result(): Promise<R>;
  signal(signal: typeof capSignal, capUsd: number | null): Promise<void>;
};

/** How every child ends with its run. A worker that has lost a long batch from its memory computes it anew within one workflow task: the usual 10 s are short for that on a busy machine. */
export const CHILD = {
  workflowTaskTimeout: '30s',
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
} as const;

/** Does work that is cancelled when a person stops the run. @throws RunStopped when it did not end by itself before that */
export async function unlessStopped<R>({ desk }: Run, work: () => Promise<R>): Promise<R> {
  const scope = new CancellationScope({ cancellable: true });
  let settled = false;
  // Not cancellable: when the run is cancelled its scopes cancel the work, and nobody would be there to hear this wait fail.
  const stop = CancellationScope.nonCancellable(() => condition(() => desk.stopping || settled)).then(() => {
    if (!settled) scope.cancel();
  });
  try {
    return await scope.run(work);
  } catch (error) {
    if (desk.stopping) throw new RunStopped();
    throw error;
  } finally {
    settled = true;
    await stop;
  }
}

/** Runs a child, shows it on the board, tells it of a cap that is moved, and cancels it when a person stops the run. */
export async function runChild<R>(run: Run, label: string, reservedUsd: number, start: () => Promise<ChildHandle<R>>): Promise<R> {
  const { board, desk } = run;
  const telling = new CapTelling(() => desk.maxUsd);
  try {
    return await unlessStopped(run, async () => {
      const handle = await start();
      board.child = { workflowId: handle.workflowId, label, reservedUsd };
      telling.begin(handle);
      return handle.result();
    });
  } finally {
    board.child = null;
    await telling.end();
  }
}

/** Tells a child of the run's cap whenever it was moved since the child was started. */
class CapTelling {
  private readonly capUsd: () => number | null;
  private toldUsd: number | null;
  private isOver = false;
  private telling: Promise<void> = Promise.resolve();

  constructor(capUsd: () => number | null) {
    this.capUsd = capUsd;
    this.toldUsd = capUsd();
  }

  begin(child: Pick<ChildHandle<unknown>, 'signal'>): void {
    this.telling = CancellationScope.nonCancellable(() => this.tell(child));
  }

  async end(): Promise<void> {
    this.isOver = true;
    await this.telling;
  }

  private async tell(child: Pick<ChildHandle<unknown>, 'signal'>): Promise<void> {
    for (;;) {
      await condition(() => this.isOver || this.capUsd() !== this.toldUsd);
      if (this.isOver) return;
      this.toldUsd = this.capUsd();
      await child.signal(capSignal, this.toldUsd).catch(() => {}); // it has just ended
    }
  }
}
