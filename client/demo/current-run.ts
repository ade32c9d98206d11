import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Link } from '../connection.ts';
import { CliError, NoServer } from '../errors.ts';
import { RunClient } from '../run-client.ts';

const Record = z.object({ runId: z.string().min(1) });

/** The demo's current run, which an interrupted demo goes on with. Only its id is kept: what it is doing, Temporal knows. */
export class CurrentRun {
  private readonly file: string;

  constructor(stateDir: string) {
    this.file = join(stateDir, 'demo.json');
  }

  /** The run that is still open; null when there is none, it ended, or its database is gone. */
  async open(link: Link): Promise<RunClient | null> {
    const runId = this.read();
    if (runId === null) return null;
    const run = new RunClient(link, runId);
    try {
      return (await run.state()).open ? run : null;
    } catch (error) {
      if (error instanceof CliError && !(error instanceof NoServer)) return null;
      throw error;
    }
  }

  /** Written before the run is started: a crash in between leaves an id that no run has, never a run that nobody knows. */
  remember(runId: string): void {
    writeFileSync(`${this.file}.new`, `${JSON.stringify({ runId })}\n`);
    renameSync(`${this.file}.new`, this.file);
  }

  private read(): string | null {
    try {
      const known = Record.safeParse(JSON.parse(readFileSync(this.file, 'utf8')));
      return known.success ? known.data.runId : null;
    } catch (error) {
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }
}
