/** The names that a mistyped one is likely to stand for, the nearest first; none where all are far from it. */
export function nearest(given: string, names: Iterable<string>, most = 3): string[] {
  const limit = Math.max(2, Math.floor(given.length / 3));
  const wanted = given.toLowerCase();
  const scored = [...names].flatMap((name) => {
    const edits = Math.abs(name.length - given.length) > limit ? limit + 1 : distance(wanted, name.toLowerCase());
    return edits <= limit && edits < Math.max(name.length, given.length) ? [{ name, edits }] : [];
  });
  return scored
    .sort((a, b) => a.edits - b.edits || (a.name < b.name ? -1 : 1))
    .slice(0, most)
    .map(({ name }) => name);
}

/** `; did you mean "a" or "b"?`, or nothing. */
export function didYouMean(given: string, names: Iterable<string>): string {
  const near = nearest(given, names).map((name) => `"${name}"`);
  return near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
}

/** Letters to put in, take out or change to make one text of the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
