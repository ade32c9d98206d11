import { parseSync } from '@swc/core';

/** One import of a module. `typeOnly` ones vanish before the code runs; `line` counts from 1. */
export type Import = { readonly specifier: string; readonly typeOnly: boolean; readonly line: number };

/**
 * Every module that a TypeScript source names: static and dynamic imports, re-exports and `import('…')` types.
 * `import { type A } from` counts as a real import, because with verbatimModuleSyntax the module is still loaded.
 */
export function importsOf(source: string): Import[] {
  const program: unknown = parseSync(source, { syntax: 'typescript', target: 'es2024' });
  const found: { specifier: string; typeOnly: boolean }[] = [];
  visit(program, found);
  return found.map((entry) => ({ ...entry, line: lineOf(source, entry.specifier) }));
}

type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

function visit(value: unknown, found: { specifier: string; typeOnly: boolean }[]): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, found);
    return;
  }
  if (!isNode(value)) return;
  const entry = readImport(value);
  if (entry !== null) found.push(entry);
  for (const child of Object.values(value)) visit(child, found);
}

function readImport(node: Node): { specifier: string; typeOnly: boolean } | null {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return named(node.source, node.typeOnly === true);
    case 'TsImportType':
      return named(node.argument, true);
    case 'CallExpression':
      return isNode(node.callee) && node.callee.type === 'Import' ? named(firstArgument(node), false) : null;
    default:
      return null;
  }
}

function firstArgument(call: Node): unknown {
  const first: unknown = Array.isArray(call.arguments) ? call.arguments[0] : undefined;
  return isNode(first) ? first.expression : undefined;
}

/** The specifier when it is a plain string; a computed one names no module that could be judged. */
function named(literal: unknown, typeOnly: boolean): { specifier: string; typeOnly: boolean } | null {
  return isNode(literal) && literal.type === 'StringLiteral' && typeof literal.value === 'string'
    ? { specifier: literal.value, typeOnly }
    : null;
}

/** swc's byte spans depend on what else the process parsed before, so the line is looked up in the text. */
function lineOf(source: string, specifier: string): number {
  const at = Math.max(source.indexOf(`'${specifier}'`), source.indexOf(`"${specifier}"`));
  return source.slice(0, Math.max(at, 0)).split('\n').length;
}
