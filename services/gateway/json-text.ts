/**
 * Parts of a JSON text as they were written: numbers keep their form and objects their key order, which `JSON.parse` loses, and nothing is made
 * of what is passed over. The text must be one that `JSON.parse` takes for an object. Linear, and fast where most of it is strings.
 */

/** The texts of the elements of a top-level array. */
export function arrayElementTexts(json: string, key: string): string[] {
  const array = memberTexts(json, [key]).get(key);
  if (array?.[0] !== '[') return [];
  const texts: string[] = [];
  let at = afterSpace(array, 1);
  while (array[at] !== ']') {
    const end = endOfValue(array, at);
    texts.push(array.slice(at, end));
    at = afterSpace(array, end);
    if (array[at] === ',') at = afterSpace(array, at + 1);
  }
  return texts;
}

/** The texts of top-level values by their keys; of a key that is written twice, the last one, as `JSON.parse` has it. */
export function memberTexts(json: string, keys: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let at = afterSpace(json, afterSpace(json, 0) + 1);
  while (json[at] === '"') {
    const keyEnd = endOfString(json, at);
    const start = afterSpace(json, afterSpace(json, keyEnd) + 1);
    const end = endOfValue(json, start);
    const key = JSON.parse(json.slice(at, keyEnd)) as string;
    if (keys.includes(key)) found.set(key, json.slice(start, end));
    at = afterSpace(json, end);
    if (json[at] === ',') at = afterSpace(json, at + 1);
  }
  return found;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function endOfValue(json: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (code === 0x7b || code === 0x5b) at = step(1);
    else if (code === 0x7d || code === 0x5d) at = step(-1);
    else if (depth === 0) at = endOfWord(json, at);
    else at++;
  } while (depth > 0);
  return at;

  function step(by: 1 | -1): number {
    depth += by;
    return at + 1;
  }
}

/** Behind a number, `true`, `false` or `null`. */
function endOfWord(json: string, start: number): number {
  const word = /[^\s,\]}]*/y;
  word.lastIndex = start;
  return start + (word.exec(json)?.[0].length ?? 0);
}

/** Behind the closing quote: one that an even number of backslashes stands before. */
function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); ; quote = json.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (json.charCodeAt(before) === BACKSLASH) before--;
    if ((quote - before) % 2 === 1) return quote + 1;
  }
}

function afterSpace(json: string, start: number): number {
  let at = start;
  while (' \t\n\r'.includes(json[at] ?? 'x')) at++;
  return at;
}
