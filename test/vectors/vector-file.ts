import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseKeepingLiterals } from './literals.ts';

/** One recorded case: what went in, what came out, and whether what came out is questionable. */
export type VectorCase = {
  readonly id: string;
  readonly note: string;
  readonly input: unknown;
  /** The input as JSON text with its number literals as they stand in the file: `1.0` is a value of its own to some readers. */
  readonly inputText: string;
  readonly expected: unknown;
  /** The recorded value is questionable; another value of ours is a decision, not a mistake. */
  readonly oddity?: string;
  /** The recorder converts types generously; refusing instead is fine. */
  readonly lenient: boolean;
};

export type VectorFamily = {
  readonly family: string;
  readonly file: string;
  /** Where the file lies: some families refer to a file beside them. */
  readonly path: string;
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
const File = z.looseObject({ family: z.string(), cases: z.array(z.unknown()) });
/** What a client returned in a whole session, step by step. */
const Steps = z.looseObject({ steps: z.array(z.looseObject({ step: z.string() })) });

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
    return { family, file: name, path, extras: {}, cases: lines.map((line, i) => toCase(parse(line, `${name} line ${i + 1}`), i)) };
  }
  const literal = parse(text, name);
  const parsed = File.safeParse(literal);
  if (!parsed.success) return { family, file: name, path, extras: {}, cases: stepsOf(literal) };
  const { cases, ...extras } = parsed.data;
  return { family: extras.family, file: name, path, extras: plain(extras), cases: cases.map(toCase) };
}

function stepsOf(literal: unknown): VectorCase[] {
  const parsed = Steps.safeParse(literal);
  return parsed.success ? parsed.data.steps.map((step, i) => ({ ...toCase(step, i), id: step.step })) : [];
}

function toCase(literal: unknown, index: number): VectorCase {
  const inputText = JSON.stringify((literal as { input?: unknown }).input ?? literal);
  const raw = Case.parse(plain(literal));
  const { note, expected, oddity, lenient } = raw;
  const id = raw.id ?? raw.case ?? `#${index + 1}`;
  return { id, note, input: JSON.parse(inputText), inputText, expected, lenient, ...(oddity === undefined ? {} : { oddity }) };
}

const plain = <T>(literal: T): T => JSON.parse(JSON.stringify(literal));

function parse(text: string, where: string): unknown {
  try {
    return parseKeepingLiterals(text);
  } catch (error) {
    throw new Error(`${where} is not JSON: ${(error as Error).message}`);
  }
}
