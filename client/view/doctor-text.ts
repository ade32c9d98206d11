import type { Colors } from '../console.ts';
import { type Finding, isBroken } from '../doctor/finding.ts';
import { wrapped } from './wrap.ts';

const PARTS = { here: 'This machine', services: 'Services', environments: "harbor's other environments" } as const;
const SIGN = { works: '✓', missing: '✗', warning: '!', unknown: '?' } as const;
const PAINT = { works: 'green', missing: 'red', warning: 'yellow', unknown: 'dim' } as const;
const NAME_WIDTH = 17;
const INDENT = ' '.repeat(NAME_WIDTH + 5);
const WIDTH = 80;

/** One line for each thing that was looked at, below it what to do, and at the end whether what was asked for will work. */
export function doctorText(findings: readonly Finding[], colors: Colors): string {
  const parts = Object.entries(PARTS).flatMap(([part, title]) => {
    const lines = findings.filter((finding) => finding.part === part).flatMap((finding) => findingLines(finding, colors));
    return lines.length === 0 ? [] : [colors.bold(title), ...lines, ''];
  });
  return [...parts, verdict(findings, colors)].join('\n');
}

function findingLines({ name, state, told, remedy, needed }: Finding, colors: Colors): string[] {
  const paint = state === 'missing' && !needed ? colors.dim : colors[PAINT[state]];
  const [first = '', ...rest] = block(told);
  const head = `  ${paint(SIGN[state])} ${name.padEnd(NAME_WIDTH)} ${first}`;
  const advice = remedy === null ? [] : block(`→ ${remedy}`, '  ');
  return [head, ...rest.map((line) => `${INDENT}${line}`), ...advice.map((line) => colors.dim(`${INDENT}${line}`))];
}

/** Lines that fit beside the names. */
const block = (text: string, indent = ''): string[] => wrapped(text, indent, WIDTH - INDENT.length).split('\n');

function verdict(findings: readonly Finding[], colors: Colors): string {
  if (!isBroken(findings)) return colors.green('What is needed works.');
  const names = findings.filter(({ needed, state }) => needed && state === 'missing').map(({ name }) => name);
  return colors.red(wrapped(`Needed, and does not work: ${names.join(', ')}.`, '  '));
}
