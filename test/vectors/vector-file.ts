import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/** One recorded case: what went in, what came out, and whether what came out is questionable. */
export type VectorCase = {
  readonly id: string;
  readonly note: string;
  readonly input: unknown;
  readonly expected: unknown;
  /** The recorded value is questionable; another value of ours is a decision, not a mistake. */
  readonly oddity?: string;
  /** The recorder converts types generously; refusing instead is fine. */
  readonly lenient: boolean;
};

export type VectorFamily = {
  readonly family: string;
  readonly file: string;
  readonly cases: readonly VectorCase[];
  /** Keys of the file beside its cases, e.g. lists all cases refer to. */
  readonly extras: Readonly<Record<string, unknown>>;
};

const Case = z.looseObject({
  id: z.string().optional(),
  case: z.string().optional(),
  note: z.string().default(''),
  input: z.unknown().optional(),
  expected: z.unknown().optional(),
  oddity: z.string().optional(),
  lenient: z.boolean().default(false),
});
const File = z.looseObject({ family: z.string(), cases: z.array(Case) });

/** Every vector file of a directory, by name. Files of another shape come back as families without cases. @throws when there is none. */
export function readVectorDir(dir: string): VectorFamily[] {
  const files = readdirSync(dir).filter((name) => /\.jsonl?$/.test(name));
  if (files.length === 0) throw new Error(`${dir} holds no vector file (*.json or *.jsonl)`);
  return files.sort().map((name) => readVectorFile(join(dir, name), name));
}

export function readVectorFile(path: string, name: string): VectorFamily {
  const text = readFileSync(path, 'utf8');
  const family = name.replace(/\.jsonl?$/, '');
  if (name.endsWith('.jsonl')) {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return { family, file: name, extras: {}, cases: lines.map((line, i) => toCase(Case.parse(parse(line, `${name} line ${i + 1}`)), i)) };
  }
  const parsed = File.safeParse(parse(text, name));
  if (!parsed.success) return { family, file: name, extras: {}, cases: [] };
  const { cases, ...extras } = parsed.data;
  return { family: extras.family, file: name, extras, cases: cases.map(toCase) };
}

function toCase(raw: z.infer<typeof Case>, index: number): VectorCase {
  const { note, input, expected, oddity, lenient } = raw;
  const id = raw.id ?? raw.case ?? `#${index + 1}`;
  return { id, note, input: input ?? raw, expected, lenient, ...(oddity === undefined ? {} : { oddity }) };
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${where} is not JSON: ${(error as Error).message}`);
  }
}
