/** Columns that every terminal and log has. */
const WIDTH = 80;

/** Breaks text between words so that no line is wider than `width` columns, where its words allow; later lines begin with `indent`. */
export function wrapped(text: string, indent = '', width = WIDTH): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}
