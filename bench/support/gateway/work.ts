import { type SeededRandom, seededRandom } from '../../../core/random/seeded.ts';

const WORDS = 'the file has no test for this case so run build again and check that path src index returns value before import fails'.split(
  ' ',
);

export const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'bash',
      description: 'Run a command in the shell of the work directory.',
      parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
    },
  },
];

/** The texts of an agent's work on one task: what the model says in each turn, and what the shell answers. */
export type Work = {
  readonly opening: string;
  readonly turns: readonly { readonly thought: string; readonly command: string; readonly observation: string }[];
};

/** Turns of about `wordsPerTurn` words; a word is somewhat more than a token. */
export function workOf(seed: number, turns: number, wordsPerTurn: number): Work {
  const random = seededRandom(BigInt(seed));
  const said = Math.round(wordsPerTurn / 3);
  return {
    opening: `Repair the project.\n${sentence(random, 60)}`,
    turns: Array.from({ length: turns }, (_, turn) => ({
      thought: sentence(random, said),
      command: `grep -n "${sentence(random, 2)}" src/${turn}.ts`,
      observation: sentence(random, wordsPerTurn - said),
    })),
  };
}

function sentence(random: SeededRandom, words: number): string {
  return Array.from({ length: words }, () => WORDS[random.below(WORDS.length)]).join(' ');
}
