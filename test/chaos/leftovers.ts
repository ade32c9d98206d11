import { existsSync } from 'node:fs';
import { leftOf, type Process, scratchDirs } from '../support/process-tree.ts';
import type { UpProcess } from './up-process.ts';

/** What a product left behind. */
export type Leftovers = { readonly processes: readonly Process[]; readonly folders: readonly string[]; readonly seen: Seen };

/** How much there was to be left. */
export type Seen = { readonly processes: number; readonly sandboxes: number; readonly folders: number };

/** Takes note of processes and scratch folders while they live, to look for them afterwards. */
export class Sightings {
  private readonly up: UpProcess;
  private readonly stateDir: string;
  private readonly known = new Map<string, Process>();
  private readonly folders = new Set<string>();

  constructor(up: UpProcess, stateDir: string) {
    this.up = up;
    this.stateDir = stateDir;
  }

  note(): void {
    const all = this.up.all();
    for (const process of all) this.known.set(`${process.pid} ${process.born}`, process);
    for (const folder of scratchDirs(all)) this.folders.add(folder);
  }

  /** What of it is still there. */
  left(): Leftovers {
    return {
      processes: leftOf([...this.known.values()], [this.stateDir, ...this.folders]),
      folders: [...this.folders].filter((folder) => existsSync(folder)),
      seen: {
        processes: this.known.size,
        sandboxes: [...this.known.values()].filter(({ command }) => /^\S*bwrap /.test(command)).length,
        folders: this.folders.size,
      },
    };
  }
}
