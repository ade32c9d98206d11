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

it("the gateway's public URL: the flag, then the environment, then the settings", () => {
  const [flag, variable, setting] = ['https://a.test', 'https://b.test/gw', 'https://c.test'];
  const inFile = { ...settings(), gateway: { ...settings().gateway, publicUrl: setting } };
  const urlOf = (args: string[], variables: NodeJS.ProcessEnv) => readWorkerFlags(args, inFile, variables).settings.gateway.publicUrl;
  expect(urlOf(['--gateway-url', flag], { STILLROOM_GATEWAY_URL: variable })).toBe(flag);
  expect(urlOf([], { STILLROOM_GATEWAY_URL: variable })).toBe(variable);
  expect(urlOf([], { STILLROOM_GATEWAY_URL: '' })).toBe(setting);
  expect(readWorkerFlags([], settings(), {}).settings.gateway.publicUrl).toBeUndefined();
  const refused = () => readWorkerFlags([], inFile, { STILLROOM_GATEWAY_URL: 'https://me:secret@b.test' });
  expect(refused).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringMatching(/^STILLROOM_GATEWAY_URL: must not hold/) }),
  );
  expect(refused).not.toThrow(/secret/);
});

it.each([
  ['--role trainer', /--role "trainer": must be control, rollouts, training/],
  ['--role control,training --slots 4', /--slots needs a worker of one role/],
  ['--role control --slots none', /--slots "none": must be a whole number/],
  ['--metrics-port 0', /--metrics-port "0"/],
  ['--gateway-url foo', /^--gateway-url: "foo" is no http or https URL; give one like https:\/\/gateway\.example\.org\/worker-7$/],
  ['--gateway-url gw.test:80', /^--gateway-url: "gw.test:80" is no http/],
  ['--gateway-url me:secret@gw.test', /^--gateway-url: it is no http/],
  ['--gateway-url https://gw.test/?key=1', /--gateway-url: must have no query/],
])('%s is refused with exit code 2', (line, message) => {
  expect(() => read(line)).toThrow(expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }));
});
