import type { ObjectStore } from '../blobs/object-store.ts';

/**
 * The project's book of gates: how often each evaluation protocol has been looked at. A protocol that was tried often proves less.
 * A protocol's gates are numbered objects, `gates/<protocol>/<number>`, each made once and holding the id of its run.
 */
export class GateBook {
  private readonly objects: ObjectStore;

  constructor(objects: ObjectStore) {
    this.objects = objects;
  }

  /** Notes this run's gate once and returns how many other runs' gates the protocol had before it. */
  async note(protocolHash: string, runId: string): Promise<number> {
    for (let place = 0; ; place++) {
      const key = `gates/${protocolHash}/${String(place).padStart(6, '0')}`;
      const taken = !(await this.objects.create(key, new TextEncoder().encode(runId)));
      const holder = taken ? await this.objects.get(key) : null;
      if (!taken || (holder !== null && new TextDecoder().decode(holder) === runId)) return place;
    }
  }
}
