import { ModelAccess } from '../../activities/model-access.ts';
import { type ConnectOptions, TinkerClient } from '../../services/tinker/index.ts';
import { KEY } from '../trainer-process.ts';

/** A worker's way to a service, as `worker.ts` has it. */
export function accessTo(baseUrl: string, options: ConnectOptions = {}): ModelAccess {
  const common = { baseUrl, apiKey: KEY, ...options };
  return new ModelAccess((onWait, sessionId) =>
    sessionId === undefined ? TinkerClient.connect({ ...common, onWait }) : TinkerClient.attach({ ...common, sessionId, onWait }),
  );
}
