import fc from 'fast-check';

/** Texts that tokenizers and templates treat specially. */
const word = fc.constantFrom(
  'ls',
  'the file',
  'x = 1',
  'naïve',
  '日本語',
  '👩‍👩‍👧 ok',
  'a\n\nb',
  '  indented',
  'e\u0301',
  '{"a": [1, 2]}',
  '1,000.50',
  '</function>',
  'tab\there',
  '<b>bold</b>',
  'end.\n',
);
export const words = fc.array(word, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(' '));

/** What a model says in a turn. `cut` ends it early, `lookAlike` spells its close in ordinary pieces first. */
export const plannedTurn = fc.record({
  reasoning: fc.oneof(fc.constant(''), words),
  text: words,
  outerSpace: fc.boolean(),
  calls: fc.array(fc.record({ cmd: words, n: fc.integer({ min: -5, max: 5 }), deep: fc.boolean() }), { maxLength: 2 }),
  cutEvery: fc.constantFrom(0, 1, 2, 5),
  lookAlike: fc.boolean(),
  /** The part of the turn's ids that is sampled when it is cut by length. */
  cut: fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.double({ min: 0.1, max: 0.9, noNaN: true }) }),
});

/** What the agent keeps of an answer. */
export const keeping = fc.record({
  trim: fc.boolean(),
  reasoning: fc.constantFrom('field', 'dropped', 'in_text'),
  calls: fc.constantFrom('kept', 'kept', 'renamed', 'rewritten', 'emptied', 'left_out'),
});

/** What the agent does after it. */
export const move = fc.oneof(
  { weight: 8, arbitrary: fc.constant('go_on' as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('retry', 'parallel', 'branch', 'edit', 'compact', 'side', 'system_in_the_middle', 'foreign_assistant'),
  },
);

export const plannedStep = fc.record({ turn: plannedTurn, keeping, move, observation: words, lookAlikeIn: fc.boolean() });

export type PlannedTurn = typeof plannedTurn extends fc.Arbitrary<infer T> ? T : never;
export type Keeping = typeof keeping extends fc.Arbitrary<infer T> ? T : never;
export type PlannedStep = typeof plannedStep extends fc.Arbitrary<infer T> ? T : never;
