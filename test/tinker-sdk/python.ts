import { fileURLToPath } from 'node:url';
import { pythonOf } from '../support/python-env.ts';

const SDK = 'tinker==0.38.0';
const folder = fileURLToPath(new URL('../../.stillroom/tinker-sdk-venv', import.meta.url));

/** The Python of an environment that holds the official SDK; making it takes a minute. */
export const sdkPython = (): Promise<string> => pythonOf({ folder, install: [SDK], holds: SDK });
