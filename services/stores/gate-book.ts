import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';

type Line = { readonly protocolHash: string; readonly runId: string };

/** The project's book of gates: how often each evaluation protocol has been looked at. A protocol that was tried often proves less. */
export class GateBook {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Notes this run's gate once and returns how many other runs' gates the protocol had before it. */
  async note(protocolHash: string, runId: string): Promise<number> {
    const lines = (await this.read()).filter((line) => line.protocolHash === protocolHash);
    const at = lines.findIndex((line) => line.runId === runId);
    if (at >= 0) return at;
    await mkdir(dirname(this.path), { recursive: true });
    await appendFile(this.path, `${JSON.stringify({ protocolHash, runId })}\n`);
    return lines.length;
  }

  private async read(): Promise<Line[]> {
    const text = await readFile(this.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    return text.split('\n').flatMap((line) => (line.trim() ? [JSON.parse(line) as Line] : []));
  }
}
