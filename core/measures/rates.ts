/** An evaluation that had trials but executed none of them: it measured nothing, which is not a rate of 0. */
export class NullMeasurementError extends Error {
  readonly code = 'null_measurement';

  constructor(trials: number) {
    super(`none of the ${trials} trials was executed; look at the infrastructure failures before anything is compared`);
    this.name = 'NullMeasurementError';
  }
}

/** passed / executed; null when nothing was executed. */
export function solveRate(passedTrials: number, executedTrials: number): number | null {
  return executedTrials === 0 ? null : passedTrials / executedTrials;
}

/** A stored rate as every view, the gate and the tripwire read it. `over` is its denominator: a rate over nothing is stored as 0 and means null. */
export function readRate({ rate, over }: { readonly rate: number; readonly over: number }): number | null {
  return over === 0 ? null : rate;
}

/** @throws NullMeasurementError when there were trials and none was executed. */
export function requireMeasured({ trials, executedTrials }: { readonly trials: number; readonly executedTrials: number }): void {
  if (trials > 0 && executedTrials === 0) throw new NullMeasurementError(trials);
}

/** The solve rate of a step's row; null when nothing was executed. */
export function solveRateOf(row: { readonly solve_rate: number; readonly executed_trials: number }): number | null {
  return readRate({ rate: row.solve_rate, over: row.executed_trials });
}
