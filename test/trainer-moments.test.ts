import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADAM, TrainerFixture } from './trainer-fixture.ts';
import { decodeLoss, textDatum } from './trainer-process.ts';

let fixture: TrainerFixture;
beforeAll(async () => {
  fixture = await TrainerFixture.start();
});
afterAll(() => fixture.stop());

/** One model's calls, numbered. */
class Student {
  readonly id: string;
  #seq = 0;

  constructor(id: string) {
    this.id = id;
  }

  /** So many steps on texts that change from step to step; the result bytes and the loss of each. */
  async train(from: number, steps: number): Promise<{ readonly bytes: string; readonly loss: number | undefined }[]> {
    const curve = [];
    for (let step = from; step < from + steps; step++) {
      const data = [0, 1, 2].map((i) => textDatum(`files a${step}\ntask copy a${step} to b${i}\n$ cp a${step} b${i}\n`));
      const result = await fixture.client.retrieve(await fixture.client.forwardBackward(this.id, this.#next(), data));
      const metrics = decodeLoss(result).metrics;
      curve.push({ bytes: Buffer.from(result as Uint8Array).toString('base64'), loss: metrics['loss:sum'] });
      await this.call('optim_step', { adam_params: { ...ADAM, weight_decay: 0.01, grad_clip_norm: 1 } });
    }
    return curve;
  }

  async save(name: string): Promise<string> {
    return String((await this.call('save_weights', { path: name, overwrite: false })).path);
  }

  async call(path: string, body: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    const answer = await fixture.client.call(path, { model_id: this.id, seq_id: this.#next(), ...body });
    if ('error' in answer) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer as Record<string, unknown>;
  }

  #next(): number {
    this.#seq += 1;
    return this.#seq;
  }
}

const created = async (path: string, optimizer: boolean): Promise<Student> => {
  const body = { session_id: fixture.session, model_seq_id: fixture.nextModelSeqId(), path, optimizer };
  return new Student(String(((await fixture.client.call('load_weights', body)) as Record<string, unknown>).model_id));
};

describe('a loss curve that goes on from saved state', () => {
  const STEPS = 6;
  let start: Awaited<ReturnType<Student['train']>>;
  let uninterrupted: Awaited<ReturnType<Student['train']>>;
  let path: string;
  beforeAll(async () => {
    const student = new Student(await fixture.createModel());
    start = await student.train(0, 4);
    path = await student.save('middle');
    uninterrupted = await student.train(4, STEPS);
  });

  it('is bit for bit the uninterrupted one in a model created with the optimizer state', async () => {
    expect(await (await created(path, true)).train(4, STEPS)).toEqual(uninterrupted);
  });

  it('is bit for bit the uninterrupted one in a model that had trained on something else and loaded the state', async () => {
    const other = new Student(await fixture.createModel());
    await other.train(50, 3);
    await other.call('load_weights', { path, optimizer: true });
    expect(await other.train(4, STEPS)).toEqual(uninterrupted);
  });

  it('starts alike without the optimizer state and is another one from the second step on', async () => {
    const curve = await (await created(path, false)).train(4, STEPS);
    expect(curve[0]).toEqual(uninterrupted[0]);
    curve.slice(1).forEach(({ loss }, i) => {
      expect(loss).not.toBe(uninterrupted[i + 1]?.loss);
    });
  });

  it('goes down on the whole', () => {
    expect(uninterrupted.at(-1)?.loss).toBeLessThan((start[0]?.loss ?? 0) * 0.8);
  });
});
