import { join } from 'node:path';
import { generateQuickstart } from '../../examples/quickstart/generate.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

/** The quickstart's tasks are there before any test file starts: several of them use them side by side. */
export default function setup(): void {
  generateQuickstart(join(PROJECT_ROOT, '.stillroom/quickstart'));
}
