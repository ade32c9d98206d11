/** What ES2025's JSON can do and TypeScript's library does not know yet. */
type LiteralJson = {
  rawJSON(literal: string): unknown;
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
};
const json = JSON as unknown as LiteralJson;

/** Parses JSON so that JSON.stringify writes a whole number with a fraction or an exponent (`1.0`, `1e3`) as it was. */
export function parseKeepingLiterals(text: string): unknown {
  return json.parse(text, (_, value, { source }) =>
    Number.isInteger(value) && source !== undefined && /[.eE]/.test(source) ? json.rawJSON(source) : value,
  );
}
