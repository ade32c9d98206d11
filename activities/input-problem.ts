/** Something wrong with what a run was given. `field` is the input's or file's own name for it. Trying again does not help. */
export class InputProblem extends Error {
  override readonly name = 'InputProblem';
  readonly field: string;
  constructor(field: string, message: string) {
    super(`${field}: ${message}`);
    this.field = field;
  }
}

/** Answers of the file system that are about the path, not about the moment. */
const ABOUT_THE_PATH = new Set([
  'EACCES',
  'EEXIST',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'ENOENT',
  'ENOTDIR',
  'EPERM',
  'EROFS',
  'ERR_INVALID_ARG_VALUE',
]);

/** A file error as the problem of the field that named `path`; errors that may pass (a full table of open files) stay what they are. */
export function asInputProblem(error: unknown, field: string, path: string): unknown {
  if (error instanceof InputProblem) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined || !ABOUT_THE_PATH.has(code)) return error;
  return new InputProblem(field, code === 'ENOENT' ? `there is no ${path} below the project root` : `${path} cannot be used: ${message}`);
}
