import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';

const Line = z.object({ protocolHash: z.string(), runId: z.string() });
type Line = z.infer<typeof Line>;

/** The project's book of gates: how often each evaluation protocol has been looked at. A protocol that was tried often proves less. */
export class GateBook {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Notes this run's gate once and returns how many other runs' gates the protocol had before it. */
  async note(protocolHash: string, runId: string): Promise<number> {
    const text = await this.text();
    const lines = linesIn(text).filter((line) => line.protocolHash === protocolHash);
    const at = lines.findIndex((line) => line.runId === runId);
    if (at >= 0) return at;
    await mkdir(dirname(this.path), { recursive: true });
    const torn = text !== '' && !text.endsWith('\n') ? '\n' : '';
    await appendFile(this.path, `${torn}${JSON.stringify({ protocolHash, runId })}\n`);
    return lines.length;
  }

  private text(): Promise<string> {
    return readFile(this.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
  }
}

/** A line that a crash or a full disk left half is skipped: it must not cost a run its gate, after everything was paid for. */
function linesIn(text: string): Line[] {
  return text.split('\n').flatMap((line) => {
    const parsed = Line.safeParse(asJson(line));
    return parsed.success ? [parsed.data] : [];
  });
}

function asJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
