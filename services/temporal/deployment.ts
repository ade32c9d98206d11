import type { WorkerOptions } from '@temporalio/worker';

const NAME = 'TEMPORAL_DEPLOYMENT_NAME';
const BUILD = 'TEMPORAL_WORKER_BUILD_ID';

/** The environment names one half of a version. */
export class BadDeployment extends Error {
  readonly exitCode = 2;
  override readonly name = 'BadDeployment';
}

/**
 * The worker deployment version that the environment names, in the variables that Temporal's worker controller sets; none without them.
 * A run stays with the version that it began on, so that old and new workflow code can run side by side. @throws BadDeployment
 */
export function deploymentOf(variables: NodeJS.ProcessEnv): Pick<WorkerOptions, 'workerDeploymentOptions'> {
  const [deploymentName, buildId] = [variables[NAME] || undefined, variables[BUILD] || undefined];
  if (deploymentName === undefined && buildId === undefined) return {};
  if (deploymentName === undefined || buildId === undefined)
    throw new BadDeployment(`${deploymentName === undefined ? NAME : BUILD} is not set: a version is named by both ${NAME} and ${BUILD}`);
  return {
    workerDeploymentOptions: { useWorkerVersioning: true, version: { deploymentName, buildId }, defaultVersioningBehavior: 'PINNED' },
  };
}
