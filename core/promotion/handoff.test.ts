import { parse } from 'smol-toml';
import { expect, it } from 'vitest';
import { HOSTED_SERVING_ENDPOINT, handoffToml, modelsAgent, servingEndpointOf } from './handoff.ts';

const given = { samplerPath: 'tinker://run/sampler_weights/step-0016', baseModel: 'Qwen/Qwen3-8B', endpoint: 'https://example.org/v1' };

it('writes TOML that reads back as the table, tabs and Unicode kept', () => {
  const table = modelsAgent({ ...given, samplerPath: 'tinker://ü\t/权重' });
  expect(parse(handoffToml(table))).toEqual({ models: { agent: table } });
});

const control = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).filter((character) => character !== '\t');
const unembeddable = ['"', '\\', ...control, '\u007f', '\u0080', '\u009f'];
const values = { 'sampler path': 'samplerPath', 'base model': 'baseModel', endpoint: 'endpoint' } as const;

it.each(Object.entries(values))('refuses the %s by name for a quote, a backslash and every control character but the tab', (which, key) => {
  for (const character of unembeddable) {
    const refused = () => modelsAgent({ ...given, [key]: `${given[key]}${character}x` });
    expect(refused, JSON.stringify(character)).toThrow(expect.objectContaining({ refusal: { kind: 'unembeddable', which } }));
    expect(refused).toThrow(new RegExp(which));
  }
  const tabbed = modelsAgent({ ...given, [key]: `${given[key]}\tx` });
  expect(parse(handoffToml(tabbed))).toEqual({ models: { agent: tabbed } });
});

it.each(['', 's3://x', 'tinker:/x', 'tinker://', ' tinker://x', 'Tinker://x'])(
  'refuses %j, which names no weights of the service',
  (samplerPath) => {
    const refusal = { kind: 'not_a_tinker_path', which: 'sampler path' };
    expect(() => modelsAgent({ ...given, samplerPath })).toThrow(expect.objectContaining({ refusal }));
  },
);

it.each([
  [undefined, HOSTED_SERVING_ENDPOINT],
  ['http://127.0.0.1:8377', 'http://127.0.0.1:8377/oai/api/v1'],
  ['https://tinker.example/base/', 'https://tinker.example/base/oai/api/v1'],
])('weights of the service at %s are served there, not elsewhere', (baseUrl, endpoint) =>
  expect(servingEndpointOf(baseUrl)).toBe(endpoint),
);
