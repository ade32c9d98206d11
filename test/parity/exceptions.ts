import type { ParityFamily } from './families.ts';

/** Cases where we are known to differ from Python, and why. One that no longer differs must leave this list. */
export type Exception = {
  readonly kind: 'texts' | 'conversations';
  readonly families: readonly ParityFamily[];
  /** Positions in the fixture's list. */
  readonly cases: readonly number[];
  readonly difference: 'only ours refuses' | 'only Python raises' | 'other ids';
  readonly reason: string;
};

export const EXCEPTIONS: readonly Exception[] = [
  {
    kind: 'texts',
    families: ['qwen3', 'llama31', 'gptoss', 'deepseek_v3', 'gemma3'],
    cases: [6, 7],
    difference: 'only Python raises',
    reason:
      'Half a surrogate pair: Python cannot hand it to the encoder and raises; JSON from an agent may hold one, and it becomes U+FFFD.',
  },
];
