import { expect, it } from 'vitest';
import { AppSettingsSchema, readAppSettings } from './app-settings.ts';
import { readWorkerFlags } from './worker-flags.ts';

const settings = (workers = {}) => ({ ...readAppSettings(), workers: AppSettingsSchema.parse({ workers }).workers });
const read = (line: string, workers = {}) => readWorkerFlags(line === '' ? [] : line.split(' '), settings(workers));

it('without flags: every role, and what the settings say', () => {
  expect(read('')).toMatchObject({ roles: ['control', 'rollouts', 'training'], settings: settings(), metrics: null });
});

it.each([
  ['--role rollouts --slots 32', { controlSlots: 20, rolloutSlots: 32, trainingSlots: 8 }],
  ['--role training --slots 1', { controlSlots: 20, rolloutSlots: 8, trainingSlots: 1 }],
  ['--role control --slots 3', { controlSlots: 3, rolloutSlots: 8, trainingSlots: 8 }],
])('%s changes the slots of its role alone', (line, workers) => {
  expect(read(line).settings.workers).toMatchObject(workers);
});

it('metrics: the flag before the settings', () => {
  expect(read('', { metricsPort: 9100, metricsHost: '0.0.0.0' }).metrics).toEqual({ host: '0.0.0.0', port: 9100 });
  expect(read('--metrics-port 9200', { metricsPort: 9100 }).metrics).toEqual({ host: '127.0.0.1', port: 9200 });
});

it.each([
  ['--role trainer', /--role "trainer": must be control, rollouts, training/],
  ['--role control,training --slots 4', /--slots needs a worker of one role/],
  ['--role control --slots none', /--slots "none": must be a whole number/],
  ['--metrics-port 0', /--metrics-port "0"/],
])('%s is refused with exit code 2', (line, message) => {
  expect(() => read(line)).toThrow(expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }));
});
