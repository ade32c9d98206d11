import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { pythonOf } from '../support/python-env.ts';
import { testModel } from '../support/tokenizers.ts';
import { NOW_MS, PARITY_FAMILIES, type ParityFamily } from './families.ts';

/** Makes the fixtures anew with Python's transformers: `node test/parity/make.ts`. */

const HERE = import.meta.dirname;
const requirements = join(HERE, 'python', 'requirements.txt');
const python = await pythonOf({
  folder: join(PROJECT_ROOT, '.stillroom', 'parity-venv'),
  install: ['--requirement', requirements],
  holds: 'transformers==5.24.0',
});
const families: string[] = [];
for (const [family, { ownVocabulary }] of Object.entries(PARITY_FAMILIES)) {
  const { folder } = await testModel(family as ParityFamily);
  families.push(`${family}${ownVocabulary ? '' : '*'}=${folder}`);
}
const fixtures = join(HERE, '..', 'fixtures', 'parity');
mkdirSync(fixtures, { recursive: true });
await execa(python, ['-B', join(HERE, 'python', 'make_fixtures.py'), fixtures, String(NOW_MS), ...families], { stdio: 'inherit' });
