import type { AppSettings } from '../../services/settings/index.ts';
import { requireSettings } from '../../services/tinker/index.ts';
import { COMMAND } from '../command-name.ts';
import { connectByProfile } from '../connection.ts';
import { firstLine, look, missing, type Seen, unknown, works } from './finding.ts';

const LIMIT_MS = 6_000;
const HTTP_MS = 4_000;

export const temporalFinding = ({ temporal }: AppSettings): Promise<Seen> =>
  look('Temporal', LIMIT_MS, async () => {
    try {
      const link = await connectByProfile(`127.0.0.1:${temporal.port}`);
      await link.close();
      return works('Temporal', `answers at ${link.address}, namespace ${link.namespace}`);
    } catch (error) {
      const told = firstLine(error).split(';')[0] ?? '';
      const remedy = `\`${COMMAND} up\` starts one, or name another with TEMPORAL_ADDRESS`;
      return process.env.TEMPORAL_ADDRESS ? missing('Temporal', told, remedy) : unknown('Temporal', told, remedy);
    }
  });

/** Whether a training service is named and answers; nothing is asked of it that costs. */
export const trainingFinding = (env = process.env): Promise<Seen> =>
  look('training', LIMIT_MS, async () => {
    const url = env.TINKER_BASE_URL;
    if (!url) return unknown('training', 'TINKER_BASE_URL is not set', `\`${COMMAND} up\` starts the embedded trainer`);
    try {
      requireSettings();
    } catch (error) {
      return missing('training', firstLine(error), 'set TINKER_BASE_URL and TINKER_API_KEY');
    }
    try {
      const { origin } = new URL(url);
      await fetch(`${url.replace(/\/+$/, '')}/api/v1/healthz`, { signal: AbortSignal.timeout(HTTP_MS) });
      return works('training', `${origin} answers; a credential is set`);
    } catch (error) {
      return missing('training', `no answer from ${new URL(url).host}: ${firstLine(error)}`, 'look at TINKER_BASE_URL and the service');
    }
  });
