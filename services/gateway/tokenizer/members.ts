const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPENING = new Set([0x7b, 0x5b]);
const CLOSING = new Set([0x7d, 0x5d]);

/**
 * The JSON texts of some members of a JSON object, without parsing the others: a tokenizer file of 30 MB would be hundreds of megabytes of
 * objects. The text must be JSON already; of a member that comes twice the last counts.
 */
export function membersOf(json: string, names: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let depth = 0;
  let name = '';
  let start = -1;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(json, at);
      if (depth === 1 && start < 0) name = JSON.parse(json.slice(at, end + 1)) as string;
      at = end;
    } else if (code === COLON && depth === 1 && start < 0) start = at + 1;
    else if (OPENING.has(code)) depth++;
    else if (CLOSING.has(code)) depth--;
    if (start >= 0 && ((code === COMMA && depth === 1) || depth === 0)) {
      if (names.includes(name)) found.set(name, json.slice(start, at));
      start = -1;
    }
  }
  return found;
}

/** The index of the closing quote. */
function endOfString(json: string, open: number): number {
  for (let at = json.indexOf('"', open + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let before = at - 1;
    while (json.charCodeAt(before) === BACKSLASH) before--;
    if ((at - before) % 2 === 1) return at;
  }
  return json.length;
}
