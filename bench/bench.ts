/** `npm run bench -- NAME [options]`: runs one of the benches in this folder. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [name, ...options] = process.argv.slice(2);
const known = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'bench.ts' && file !== 'engine-episodes.ts')
  .map((file) => file.slice(0, -'.ts'.length));
if (name === undefined || !known.includes(name)) {
  console.error(`npm run bench -- NAME: the benches are ${known.join(', ')}`);
  process.exit(2);
}
const file = join(import.meta.dirname, `${name}.ts`);
// The bench sees its own file and options as its command line, and runs as if it had been started itself.
process.argv = [process.argv[0] as string, file, ...options];
const bench = (await import(pathToFileURL(file).href)) as { readonly main?: () => Promise<void> };
if (bench.main) await bench.main();
