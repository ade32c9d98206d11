import { join } from 'node:path';
import { generateQuickstart } from '../../examples/quickstart/generate.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { workflowBundle } from './bundle.ts';
import { leftOut } from './left-out.ts';
import { s3Python } from './s3/python.ts';

/** What several test files use side by side is there before any of them starts: the quickstart's tasks, the workflow bundle, and the S3 server's Python. At the end it is said what this machine left out. */
export default async function setup(): Promise<() => void> {
  generateQuickstart(join(PROJECT_ROOT, '.stillroom/quickstart'));
  await workflowBundle();
  await s3Python();
  // Said last, where it is read: a green run that left something out is not the whole of it.
  return () => {
    for (const line of leftOut()) process.stderr.write(`\n${line}\n`);
  };
}
