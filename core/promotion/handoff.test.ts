import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { handoffToml, modelsAgent } from './handoff.ts';

const given = { samplerPath: 'tinker://run/sampler_weights/step-0016', baseModel: 'Qwen/Qwen3-8B', endpoint: 'https://example.org/v1' };

it('writes TOML that reads back as the table, tabs and Unicode kept', () => {
  const table = modelsAgent({ ...given, samplerPath: 'tinker://ü\t/权重' });
  expect(parse(handoffToml(table))).toEqual({ models: { agent: table } });
});

describe('refuses by name', () => {
  it.each([
    ['not_a_tinker_path', 'sampler path', { samplerPath: 's3://x' }],
    ['not_a_tinker_path', 'sampler path', { samplerPath: 'tinker://' }],
    ['unembeddable', 'sampler path', { samplerPath: 'tinker://a"b' }],
    ['unembeddable', 'sampler path', { samplerPath: 'tinker://a\rb' }],
    ['unembeddable', 'sampler path', { samplerPath: 'tinker://a\u007f' }],
    ['unembeddable', 'base model', { baseModel: 'a\\b' }],
    ['unembeddable', 'endpoint', { endpoint: 'http://x\ny' }],
  ])('%s: %s', (kind, which, over) => {
    expect(() => modelsAgent({ ...given, ...over })).toThrow(expect.objectContaining({ refusal: { kind, which } }));
  });
});
