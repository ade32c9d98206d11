import { describe, expect, it } from 'vitest';
import { parseRunConfig, stringifyRunConfig } from './parse.ts';
import { type SectionName, sections } from './schema.ts';
import { startProblems } from './start-problems.ts';

const minimal = '[student]\nbase_model = "s"\n[teacher]\nmodel = "t"\n[harbor]\njob_template = "j"\n';
const parsed = (more = '') => {
  const result = parseRunConfig(minimal + more, 'run.toml');
  if (!result.ok) throw new Error(JSON.stringify(result.errors));
  return result.config;
};
const errorsOf = (toml: string) => {
  const result = parseRunConfig(toml, 'run.toml');
  return result.ok ? [] : result.errors.map(({ field, kind }) => `${field} ${kind}`);
};
const errors = (more: string) => errorsOf(minimal + more);
/** The minimal config with one more key, written into the section that may be there already. */
const withKey = (section: string, line: string) => {
  const kept = minimal.replace(new RegExp(`^${line.split(' = ')[0]} = .*\n`, 'm'), '');
  const head = `[${section}]\n`;
  return kept.includes(head) ? kept.replace(head, `${head}${line}\n`) : `${kept}${head}${line}\n`;
};

describe('parseRunConfig', () => {
  it.each([
    ['an unknown section', '[student2]\n', 'student2 unknown_key'],
    ['an infinite price', '[pricing]\nstudent_prefill = inf\n', 'pricing.student_prefill out_of_range'],
    ['an infinite timeout', '[rollout]\nepisode_timeout_s = inf\n', 'rollout.episode_timeout_s out_of_range'],
    ['an empty import path', '[eval]\nteacher_baseline_from = ""\n', 'eval rule'],
    ['a confidence of 1', '[gate]\nconfidence = 1.0\n', 'gate.confidence out_of_range'],
    ['overlap of two steps', '[train]\noverlap_steps = 2\n', 'train.overlap_steps out_of_range'],
    ['an empty student import path', '[eval]\nstudent_baseline_from = ""\n', 'eval rule'],
    ['an empty warm-up path', '[warmup]\ntrajectories_from = ""\n', 'warmup rule'],
    ['a renderer without a name', '[rollout.renderers]\ns = ""\n', 'rollout.renderers rule'],
    ['a renderer for a model without a name', '[rollout.renderers]\n"" = "qwen3"\n', '(top level) rule'],
    ['a fraction of a step', '[train]\nsteps = 2.5\n', 'train.steps wrong_type'],
    ['an infinity of steps', '[train]\nsteps = inf\n', 'train.steps wrong_type'],
    ['more steps than can be counted', '[train]\nsteps = 9007199254740993\n', 'train.steps wrong_type'],
    ['a number for a choice', '[train]\nloss = 3\n', 'train.loss not_in_choices'],
  ])('refuses %s', (_, more, expected) => expect(errors(more)).toEqual([expected]));

  it('refuses a rank of 0 and empty names, and says so for every field at once', () => {
    const text = '[student]\nbase_model = ""\nlora_rank = 0\n[teacher]\nmodel = ""\n[harbor]\njob_template = ""\nreward_key = ""\n';
    const result = parseRunConfig(text, 'run.toml');
    expect(result.ok ? [] : result.errors.map((error) => error.field)).toEqual([
      'student.base_model',
      'student.lora_rank',
      'teacher.model',
      'harbor.job_template',
      'harbor.reward_key',
    ]);
  });

  it.each(['0', '-1'])('refuses the rank %s', (rank) => {
    expect(errorsOf(withKey('student', `lora_rank = ${rank}`))).toEqual(['student.lora_rank out_of_range']);
  });

  const keys = (Object.keys(sections) as SectionName[]).flatMap((section) =>
    Object.keys(sections[section].shape).map((key) => [section, key] as const),
  );
  it.each(keys)('refuses what is not finite, at %s.%s', (section, key) => {
    for (const value of ['inf', '-inf', 'nan', '1e999']) {
      const found = errorsOf(withKey(section, `${key} = ${value}`));
      expect(found).toEqual([expect.stringMatching(`^${section}\\.${key} (out_of_range|wrong_type|not_in_choices)$`)]);
    }
  });

  it('an empty checkpoint of the teacher names no weights', () => {
    expect(errorsOf(withKey('teacher', 'checkpoint = ""'))).toEqual(['teacher rule']);
  });

  it('a date is not an empty section', () => {
    expect(errorsOf(`train = 2026-01-02\n${minimal}`)).toEqual(['train wrong_type']);
  });

  it('names the file, the field, the value and the rule', () => {
    const result = parseRunConfig(`${minimal}[train]\nsteps = 0\n`, 'runs/a.toml');
    expect(result).toMatchObject({ ok: false, errors: [{ message: expect.stringMatching(/^runs\/a\.toml: train\.steps = 0: .*1/) }] });
    expect(parseRunConfig('[a', 'b.toml')).toMatchObject({
      ok: false,
      errors: [{ kind: 'toml_syntax', message: expect.stringMatching(/^b\.toml: /) }],
    });
  });

  it('knows the keys beyond the shared ones and accepts the tiny renderer', () => {
    const config = parsed(
      '[rollout.renderers]\ns = "stillroom_tiny"\n[gate]\nconfidence = 0.95\n[budget]\nmax_usd_per_trial = 0.5\n[checkpoints]\nttl_days = 7\nkeep_last = 2\n',
    );
    expect(config.gate.confidence).toBe(0.95);
    expect(config.budget.max_usd_per_trial).toBe(0.5);
    expect(config.checkpoints).toEqual({ ttl_days: 7, keep_last: 2 });
    expect(parseRunConfig(stringifyRunConfig(config), 'again.toml')).toEqual({ ok: true, config });
  });
});

it.each([
  [1 / 24, true],
  [0.04, false],
  [3650, true],
  [3651, false],
])('a checkpoint may live %d days: %s', (days, isOk) => {
  const read = parseRunConfig(`${minimal}[checkpoints]\nttl_days = ${days}\n`, 'run.toml');
  expect(read.ok).toBe(isOk);
  if (!read.ok) expect(read.errors).toMatchObject([{ message: expect.stringContaining('ttl_days must be between an hour') }]);
});

describe('startProblems', () => {
  it('accepts the defaults and the keys that are built', () => {
    const built =
      '[train]\nloss = "ppo"\nnum_substeps = 2\nadvantage_clip = 5.0\ncenter_advantages = true\n[gate]\nconfidence = 0.95\n[budget]\nmax_usd = 3\n';
    expect(startProblems(parsed())).toEqual([]);
    expect(startProblems(parsed(built))).toEqual([]);
    expect(startProblems(parsed('[rollout]\ncompaction = true\n'))).toEqual([]);
    const evals = '[eval]\nevery = 1\nteacher_baseline_from = "t"\nstudent_baseline_from = "s"\ndefer_baselines = true\n';
    expect(startProblems(parsed(evals))).toEqual([]);
  });

  it.each([
    ['train.overlap_steps', '[train]\noverlap_steps = 1\n'],
    ['wandb.enabled', '[wandb]\nenabled = true\n'],
  ])('refuses %s by name', (field, more) => {
    expect(startProblems(parsed(more))).toMatchObject([{ field, kind: 'not_built', message: expect.stringContaining(field) }]);
  });

  it("refuses the tiny models' renderer for any other model", () => {
    const renderers = '[rollout.renderers]\ns = "stillroom_tiny"\n';
    expect(startProblems(parsed(renderers))).toMatchObject([
      { field: 'rollout.renderers', kind: 'rule', message: expect.stringMatching(/gives s the renderer "stillroom_tiny".*leave it out/) },
    ]);
  });

  it('refuses another teacher backend and another sandbox', () => {
    const text = minimal
      .replace('model = "t"', 'model = "t"\nbackend = "openai_compat"\nendpoint = "http://h/v1"\ntokenizer = "x"\nalignment = "chunk"')
      .replace('job_template = "j"', 'job_template = "j"\nbackend = "e2b"');
    const result = parseRunConfig(text, 'run.toml');
    expect(result.ok && startProblems(result.config).map((error) => error.field)).toEqual(['teacher.backend', 'harbor.backend']);
  });
});

describe('an empty endpoint or tokenizer of the teacher', () => {
  const compat = (names: string) => withKey('teacher', `backend = "openai_compat"\nalignment = "chunk"\n${names}`);
  const fieldsOf = (toml: string) => {
    const result = parseRunConfig(toml, 'run.toml');
    return result.ok ? startProblems(result.config).map(({ field }) => field) : result.errors;
  };

  it('loads, and is refused by name when a run starts, whatever else is', () => {
    expect(fieldsOf(compat('endpoint = ""\ntokenizer = ""'))).toEqual(expect.arrayContaining(['teacher.endpoint', 'teacher.tokenizer']));
    expect(fieldsOf(compat('endpoint = "http://h/v1"\ntokenizer = " "'))).toContain('teacher.tokenizer');
    expect(fieldsOf(withKey('teacher', 'tokenizer = ""'))).toEqual(['teacher.tokenizer']);
  });

  it('is not held against a teacher that names them', () => {
    expect(fieldsOf(compat('endpoint = "http://h/v1"\ntokenizer = "t"'))).toEqual(['teacher.backend']);
  });
});

it.each(['toString', 'constructor', '__proto__'])('a section named %s is unknown, like any other', (name) => {
  const parsed = parseRunConfig(
    `[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n[${name}]\nx=1\n`,
    'run.toml',
  );
  expect(parsed).toMatchObject({ ok: false, errors: [{ field: name, kind: 'unknown_key' }] });
});
