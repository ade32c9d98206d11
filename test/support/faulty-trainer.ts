import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type Desk, openDesk } from '../faults/client-calls.ts';
import { TrainerFixture } from '../trainer-fixture.ts';
import { putFaults } from './faults.ts';

/** One trainer for all tests of a file, handed over before the first. Before each test no faults are in force. */
export function withFaultyTrainer(take: (fixture: TrainerFixture) => void | Promise<void>): void {
  let fixture: TrainerFixture;
  beforeAll(async () => {
    fixture = await TrainerFixture.start({ faults: '-' });
    await take(fixture);
  });
  beforeEach(() => putFaults(fixture.trainer.url));
  afterAll(() => fixture.stop());
}

/** The same, and for each test a client of its own. */
export function withDesk(take: (desk: Desk) => void): void {
  let url: string;
  let desk: Desk;
  withFaultyTrainer(({ trainer }) => {
    url = trainer.url;
  });
  beforeEach(async () => {
    desk = await openDesk(url);
    take(desk);
  });
  afterEach(() => desk.client.close());
}
