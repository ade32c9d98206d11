import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pythonOf } from '../python-env.ts';

const lock = fileURLToPath(new URL('./requirements.lock', import.meta.url));
const folder = fileURLToPath(new URL('../../../.stillroom/s3-server-venv', import.meta.url));

/** The Python of an environment that holds moto, an S3-speaking server; making it takes some seconds and 130 MB. */
export const s3Python = (): Promise<string> =>
  pythonOf({ folder, install: ['--no-deps', '--only-binary', ':all:', '--no-compile', '-r', lock], holds: readFileSync(lock, 'utf8') });
