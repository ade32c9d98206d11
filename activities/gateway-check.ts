import { failed, passed } from '../core/run/check.ts';
import type { Check } from '../core/run/results.ts';
import { otherThanGateway } from '../services/gateway/index.ts';

const NAME = 'gateway';

/** Whether a gateway answers where agents are told to find this worker's: a proxy may come up later than the worker, so each run asks. */
export async function checkPublicUrl(publicUrl: string, signal: AbortSignal): Promise<Check> {
  const other = await otherThanGateway(publicUrl, signal);
  if (other === null) return passed(NAME, `answers at its public URL, ${publicUrl}`);
  const setting = 'the public URL of a rollout worker (gateway.publicUrl, STILLROOM_GATEWAY_URL or --gateway-url)';
  const remedy = "It must lead to that worker's gateway.host and gateway.port: mend the proxy, or leave the public URL out";
  return failed(NAME, `no gateway at ${setting}: ${other}. ${remedy}`);
}
