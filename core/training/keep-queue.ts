/**
 * Where trainings are kept alive: a queue beside that of the training calls, with workers of its own, because each open training takes
 * a place on it for as long as it lasts.
 */
export const keepQueueOf = (trainingQueue: string) => `${trainingQueue}-keep`;
