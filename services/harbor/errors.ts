/** A file or value handed to harbor is wrong; the message names it and says what to do. Trying again does not help. */
export class BadHarborInput extends Error {
  override readonly name = 'BadHarborInput';
}

/** harbor refused to begin the trial (bad task folder, bad import path, bad option). Trying again does not help. */
export class TrialRefused extends Error {
  override readonly name = 'TrialRefused';
}

/** The trial ended without a readable result. The runner lives; another attempt under a new trial name may succeed. */
export class TrialCrashed extends Error {
  override readonly name: string = 'TrialCrashed';
}

/** The trial left a result, but not in harbor 0.25's form. The next one would be no other. */
export class ForeignResult extends TrialCrashed {
  override readonly name = 'ForeignResult';
}

/** The runner process ended while the trial ran. Another attempt starts a new runner. */
export class RunnerDied extends Error {
  override readonly name = 'RunnerDied';
}

/** A task could not be fetched now: the network, the server, or the machine. Trying again later may help. */
export class TaskUnreachable extends Error {
  override readonly name = 'TaskUnreachable';
}

/** A task is no longer what the run pinned, here or at its source. Trying again does not help. */
export class TaskChanged extends Error {
  override readonly name = 'TaskChanged';
}
