import { expect, it } from 'vitest';
import { deploymentOf } from './deployment.ts';

it('no variables: no version', () => {
  expect(deploymentOf({ TEMPORAL_DEPLOYMENT_NAME: '' })).toEqual({});
});

it('both variables: runs stay with this version', () => {
  expect(deploymentOf({ TEMPORAL_DEPLOYMENT_NAME: 'stillroom', TEMPORAL_WORKER_BUILD_ID: 'b7' })).toEqual({
    workerDeploymentOptions: {
      useWorkerVersioning: true,
      version: { deploymentName: 'stillroom', buildId: 'b7' },
      defaultVersioningBehavior: 'PINNED',
    },
  });
});

it.each([
  [{ TEMPORAL_DEPLOYMENT_NAME: 'stillroom' }, /^TEMPORAL_WORKER_BUILD_ID is not set/],
  [{ TEMPORAL_WORKER_BUILD_ID: 'b7' }, /^TEMPORAL_DEPLOYMENT_NAME is not set/],
])('half a version is refused: %j', (variables, message) => {
  expect(() => deploymentOf(variables)).toThrow(message);
});
