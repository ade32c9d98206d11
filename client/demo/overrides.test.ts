import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { overrideToml, parseOverride } from './overrides.ts';

const TOML = '[train]\nsteps = 16 # many\n[rollout.renderers]\n"a/b" = "x"\n';

describe('a value replaces the old one, as TOML where it is that', () => {
  test.each([
    ['train.steps=4', ['train', 'steps'], 4],
    ['train.learning_rate=1e-12', ['train', 'learning_rate'], 1e-12],
    ['tripwire.enabled=false', ['tripwire', 'enabled'], false],
    ['harbor.job_template=a/job.json', ['harbor', 'job_template'], 'a/job.json'],
    ['harbor.job_template="a/job.json"', ['harbor', 'job_template'], 'a/job.json'],
    ['wandb.tags=["x", "y"]', ['wandb', 'tags'], ['x', 'y']],
  ])('%s', (text, [section, key], value) => {
    const changed = parse(overrideToml(TOML, [parseOverride(text)])) as Record<string, Record<string, unknown>>;
    expect(changed[section as string]?.[key as string]).toEqual(value);
    expect(changed.rollout).toEqual({ renderers: { 'a/b': 'x' } });
  });
});

test.each(['steps=4', 'train.steps', '=4', 'train.=4'])('"%s" is refused with the form it must have', (text) => {
  expect(() => parseOverride(text)).toThrow(/must look like section\.key=value/);
});

test('a value is not a section', () => {
  expect(() => overrideToml(TOML, [parseOverride('train.steps.x=1')])).toThrow(/steps is a value, not a section/);
});
