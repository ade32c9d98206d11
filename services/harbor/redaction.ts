export type Redact = {
  readonly bytes: (bytes: Buffer) => Buffer;
  readonly text: (text: string) => string;
  /** Bytes of the longest form of a secret. */
  readonly longest: number;
};

const MARK = Buffer.from('[REDACTED]');

/** Replaces secrets wherever they stand, as they are or as JSON writes them. */
export function redactor(secrets: readonly string[]): Redact {
  const forms = new Set(secrets.filter((secret) => secret !== '').flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]));
  // The longest first: one secret may be the beginning of another.
  const texts = [...forms].sort((a, b) => b.length - a.length);
  const needles = texts.map((text) => Buffer.from(text));
  return {
    bytes: (bytes) => needles.reduce(replaced, bytes),
    text: (text) => texts.reduce((so, secret) => so.replaceAll(secret, `${MARK}`), text),
    longest: Math.max(0, ...needles.map(({ length }) => length)),
  };
}

function replaced(bytes: Buffer, needle: Buffer): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, from)) {
    parts.push(bytes.subarray(from, at), MARK);
    from = at + needle.length;
  }
  return from === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(from)]);
}
