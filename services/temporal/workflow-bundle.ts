import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/** A module of its own, because it goes into the bundle too. */
export const PAYLOAD_CONVERTER = join(import.meta.dirname, 'payload-converter.ts');

/** What every bundle of the workflows below `root` is made of: all that these files load. */
export const bundleSources = (root: string) => ({
  workflowsPath: join(root, 'workflows/index.ts'),
  workflowInterceptorModules: [join(root, 'services/temporal/workflow-guards.ts'), join(root, 'workflows/fair-share.ts')],
  payloadConverterPath: join(root, 'services/temporal/payload-converter.ts'),
});

/**
 * The bundle of workflow code at `<root>/workflows/index.ts`, kept in `cacheDir` under a digest of its sources and the lock file:
 * bundling takes seconds, a worker that is started again should not.
 */
export async function workflowBundle(root: string, cacheDir: string): Promise<{ codePath: string }> {
  const codePath = join(cacheDir, `workflows-${await digestOf(root)}.js`);
  const exists = await readFile(codePath).then(
    () => true,
    () => false,
  );
  if (exists) return { codePath };
  const { code } = await bundleWorkflowCode({ ...bundleSources(root), logger: new DefaultLogger('ERROR') });
  await mkdir(cacheDir, { recursive: true });
  const partial = `${codePath}.${randomUUID()}.partial`;
  await writeFile(partial, code);
  await rename(partial, codePath);
  return { codePath };
}

async function digestOf(root: string): Promise<string> {
  const hash = createHash('sha256');
  for (const folder of ['workflows', 'core'])
    for (const name of (await readdir(join(root, folder), { recursive: true })).filter((name) => name.endsWith('.ts')).sort())
      hash.update(`${folder}/${name}\n`).update(await readFile(join(root, folder, name)));
  const beside = ['payload-converter.ts', 'payload-guard.ts', 'failure-guard.ts', 'workflow-guards.ts'].map((name) =>
    join(import.meta.dirname, name),
  );
  for (const file of [...beside, join(root, 'package-lock.json')]) hash.update(await readFile(file));
  return hash.digest('hex').slice(0, 16);
}
