/** Strings are matched first, so that a name within one stays as it is. */
const NAME_OR_STRING = /"(?:[^"\\]|\\.)*"|-?Infinity\b|NaN\b/g;

/**
 * JSON, also as Python writes it: NaN, Infinity and -Infinity stand bare where JSON has no number, and are read as strings.
 * @throws SyntaxError when it is no JSON even so
 */
export function parseLooseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const quoted = text.replace(NAME_OR_STRING, (found) => (found.startsWith('"') ? found : `"${found}"`));
    if (quoted === text) throw cause;
    return JSON.parse(quoted);
  }
}
