import { z } from 'zod';
import { didYouMean } from './nearest.ts';

/** What is wrong with a file, each by its field; an unknown key with the ones that it may stand for. */
export function fieldProblems(schema: z.ZodType, { issues }: z.ZodError): string[] {
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [`${fieldOf(issue.path)}: ${issue.message}`];
    const known = keysAt(schema, issue.path);
    return issue.keys.map((key) => `${fieldOf([...issue.path, key])}: unknown key${didYouMean(key, known)}`);
  });
}

const fieldOf = (path: readonly PropertyKey[]) => (path.length === 0 ? '(whole file)' : path.map(String).join('.'));

/** The keys that a schema knows at a path of the value. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let here: unknown = schema;
  for (const part of [...path, null]) {
    while (here instanceof z.ZodOptional) here = here.unwrap();
    if (part === null) break;
    if (here instanceof z.ZodArray) here = here.element;
    else if (here instanceof z.ZodObject) here = here.shape[String(part)];
  }
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}
