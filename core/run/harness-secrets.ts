import type { HarnessDocument } from './harness-document.ts';
import type { FieldProblem } from './harness-kwargs.ts';

/** Placeholders of what only a trial knows. */
const PLACEHOLDERS = ['STILLROOM_API_BASE', 'STILLROOM_MODEL', 'STILLROOM_GATEWAY_KEY'];
/** Runtimes whose agents are told their model here, and not by a kwarg or variable of the document. */
const WIRED = ['turn', 'terminus-2', 'pi'];

/** Variables of such names are secrets; an option may well be a `sort_key` or a `stop_token`. */
const SECRET_VARIABLE = /(^|_)(key|token|secret|password|passwd|credentials?|authorization)$|apikey$/i;
const SECRET_OPTION =
  /(^|[_-])(api[_-]?key|(access|secret|private|auth)[_-]?key|(api|auth|access|bearer|refresh)[_-]?token|secret|password|passwd|credentials?|authorization)$|^(key|token)$/i;
/** Keys as services write them: OpenAI and those like it, GitHub, AWS, Slack, Hugging Face, Google, signed tokens. */
const SECRET_VALUE =
  /\b(sk-[\w-]{8,}|sk_[\w-]{8,}|tml-[\w-]{8,}|gh[opsu]_\w{16,}|github_pat_\w{16,}|AKIA[0-9A-Z]{16}|xox[abp]-[\w-]{8,}|hf_\w{16,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.)/;

/** Literal secrets, which a document would show to everybody who reads a run, and placeholders that nobody fills in. */
export function secretProblems(document: HarnessDocument): FieldProblem[] {
  const { kwargs, env, prompt, runtime } = document;
  return [
    ...texts(kwargs, ['kwargs']).flatMap((text) => problemsOf(text, runtime)),
    ...texts(env, ['env']).flatMap((text) => problemsOf(text, runtime)),
    ...(prompt !== undefined && SECRET_VALUE.test(prompt)
      ? [{ path: ['prompt'], message: 'holds what looks like a key: take it out' }]
      : []),
  ];
}

type Text = { readonly path: readonly string[]; readonly value: string };

function problemsOf({ path, value }: Text, runtime: string): FieldProblem[] {
  const names = [...value.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string);
  const isEnv = path[0] === 'env';
  const isNamedSo = (isEnv ? SECRET_VARIABLE : SECRET_OPTION).test(path.at(-1) ?? '');
  if (SECRET_VALUE.test(value) || (names.length === 0 && value !== '' && isNamedSo))
    return [
      { path, message: `holds a secret, or what looks like one; a trial's key is \${STILLROOM_GATEWAY_KEY}, any other has no place here` },
    ];
  const unknown = names.find((name) => !PLACEHOLDERS.includes(name) && (isEnv || name.startsWith('STILLROOM_')));
  if (unknown !== undefined)
    return [{ path, message: `\${${unknown}} is filled in by nobody; there are ${PLACEHOLDERS.map((name) => `\${${name}}`).join(', ')}` }];
  const filled = names.find((name) => PLACEHOLDERS.includes(name));
  if (filled !== undefined && WIRED.includes(runtime))
    return [{ path, message: `\${${filled}} is for the runtimes import and installed: ${runtime} is told its model by Stillroom` }];
  return [];
}

/** All text in a value, with where it stands. */
function texts(value: unknown, path: readonly string[]): Text[] {
  if (typeof value === 'string') return [{ path, value }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => texts(inner, [...path, key]));
}
