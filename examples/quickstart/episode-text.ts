import type { Turn } from './demonstrate.ts';
import type { QuickTask } from './tasks.ts';
import { promptText } from './tasks.ts';

/** The end of every user message: the model writes its command after it. */
export const GENERATION_PROMPT = '\n$ ';

/** An episode as the model sees it. Every character is ASCII, so a character index is a token index. */
export type EpisodeText = {
  readonly text: string;
  /** `[start, end)` of what the assistant wrote, its final newline (the stop token) included; one range a turn. */
  readonly assistant: readonly (readonly [start: number, end: number])[];
};

/** Renders a whole episode for pretraining; the last turn's observation is left out, nobody reads it. */
export function episodeText(task: Pick<QuickTask, 'files' | 'instruction'>, turns: readonly Turn[]): EpisodeText {
  const assistant: (readonly [number, number])[] = [];
  let text = promptText(task);
  turns.forEach(({ action }, i) => {
    const before = i === 0 ? '' : (turns[i - 1]?.observation ?? '');
    text += `${before}${GENERATION_PROMPT}`;
    assistant.push([text.length, text.length + action.length + 1]);
    text += `${action}\n`;
  });
  return { text, assistant };
}
