/** The work directory as the simulator sees it: flat, file name → bytes. It is changed in place. */
export type SimFiles = Map<string, string>;

/** What a command leaves to read; standard error is not shown to the model. */
export type SimResult = { readonly exitCode: number; readonly stdout: string };

/** Standard output and exit code of one command, before redirection. */
type Command = (args: readonly string[], files: SimFiles) => SimResult;

const ok = (stdout = ''): SimResult => ({ exitCode: 0, stdout });
const failed = (exitCode: number, stdout = ''): SimResult => ({ exitCode, stdout });

const transfer =
  (keepSource: boolean): Command =>
  (args, files) => {
    const [from, to] = args;
    if (args.length !== 2 || from === undefined || to === undefined || from === to) return failed(1);
    const content = files.get(from);
    if (content === undefined) return failed(1);
    files.set(to, content);
    if (!keepSource) files.delete(from);
    return ok();
  };

const COMMANDS: Readonly<Record<string, Command>> = {
  echo: (args) => ok(`${args.join(' ')}\n`),
  cp: transfer(true),
  mv: transfer(false),
  rm: (args, files) => {
    const missing = args.filter((name) => !files.delete(name));
    return args.length === 0 || missing.length > 0 ? failed(1) : ok();
  },
  cat: (args, files) => {
    const stdout = args.map((name) => files.get(name) ?? '').join('');
    return args.every((name) => files.has(name)) ? ok(stdout) : failed(1, stdout);
  },
  ls: (args, files) => {
    const names = args.length === 0 ? [...files.keys()] : args.filter((name) => files.has(name));
    const stdout = names
      .sort()
      .map((name) => `${name}\n`)
      .join('');
    return args.every((name) => files.has(name)) ? ok(stdout) : failed(2, stdout);
  },
  grep: (args, files) => {
    const namesOnly = args[0] === '-l';
    const [pattern, ...names] = namesOnly ? args.slice(1) : args;
    if (pattern === undefined) return failed(2);
    const found = names.flatMap((name) => matches(name, pattern, files.get(name), namesOnly, names.length > 1));
    if (names.some((name) => !files.has(name))) return failed(2, found.join(''));
    return found.length > 0 ? ok(found.join('')) : failed(1);
  },
};

function matches(name: string, pattern: string, content: string | undefined, namesOnly: boolean, prefixed: boolean): string[] {
  const lines = (content ?? '')
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.includes(pattern));
  if (namesOnly) return lines.length > 0 ? [`${name}\n`] : [];
  return lines.map((line) => (prefixed ? `${name}:${line}\n` : `${line}\n`));
}

type Redirect = { readonly descriptor: number; readonly append: boolean; readonly target: string };

/** Splits a line into words and redirections; null where it is not the plain syntax the simulator knows. */
function parse(line: string): { words: string[]; redirects: Redirect[] } | null {
  const words: string[] = [];
  const redirects: Redirect[] = [];
  let rest = line.trim();
  while (rest !== '') {
    // A number touching `>` names a descriptor: `echo 7>sun` prints an empty line and makes sun empty.
    const redirect = /^(\d?)(>>?)\s*([\w-]+)(?=[\s>]|$)\s*/.exec(rest);
    const word = /^([\w*-]+)(?=[\s>]|$)\s*/.exec(rest);
    const token = redirect ?? word;
    if (token === null) return null;
    if (redirect) redirects.push({ descriptor: Number(redirect[1] || 1), append: redirect[2] === '>>', target: redirect[3] as string });
    else words.push(token[1] as string);
    rest = rest.slice(token[0].length);
  }
  return { words, redirects };
}

/** Pathname expansion; a pattern that matches nothing stays as it is. */
function expand(word: string, files: SimFiles): string[] {
  if (!word.includes('*')) return [word];
  const pattern = new RegExp(`^${word.replaceAll('*', '.*')}$`);
  const names = [...files.keys()].filter((name) => pattern.test(name)).sort();
  return names.length > 0 ? names : [word];
}

/**
 * Runs one line as `/bin/sh` would in a directory that holds only `files`: echo, cp, mv, rm, grep, cat, ls, `>` and `>>`.
 * Unknown commands end with 127; syntax beyond plain words and redirections (quotes, pipes, paths …) is refused with 2, like a syntax error.
 */
export function runSimulated(line: string, files: SimFiles): SimResult {
  const parsed = parse(line);
  // `done` is a reserved word of the shell; only the agent gives it a meaning.
  if (parsed === null || parsed.words[0] === 'done') return failed(2);
  // In the shell's order: patterns first, then files are opened (and emptied), then the command runs.
  const [name, ...args] = parsed.words.flatMap((word) => expand(word, files));
  for (const { append, target } of parsed.redirects) files.set(target, append ? (files.get(target) ?? '') : '');
  if (name === undefined) return ok();
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const result = command ? command(args, files) : failed(127);
  const output = parsed.redirects.findLast(({ descriptor }) => descriptor === 1);
  if (output === undefined) return result;
  files.set(output.target, (files.get(output.target) ?? '') + result.stdout);
  return failed(result.exitCode);
}

/** The observation the model reads: `[0]` or `[0] 7`; newlines of the output become spaces. */
export function observationText(exitCode: number, stdout: string): string {
  return `[${exitCode}] ${stdout.replaceAll('\n', ' ').trim()}`.trimEnd();
}
