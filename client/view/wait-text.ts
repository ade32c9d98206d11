import type { Wait } from '../../core/run/phase.ts';
import { COMMAND } from '../command-name.ts';

/** The `stillroom` commands that answer each kind of question. */
const COMMANDS: Readonly<Record<Wait['kind'], readonly string[]>> = {
  cost: ['confirm RUN', 'decline RUN'],
  budget: ['budget RUN USD', 'stop RUN'],
  billing: ['resume RUN', 'stop RUN'],
  teacher: ['continue RUN', 'stop RUN'],
  promotion: ['approve RUN', 'reject RUN'],
  pause: ['resume RUN', 'stop RUN'],
};

export function answersTo(wait: Wait, runId: string): string[] {
  return COMMANDS[wait.kind].map((command) => `${COMMAND} ${command.replace('RUN', runId)}`);
}

/** What a run waits for and how to answer it. */
export function waitText(wait: Wait, runId: string): string {
  return `waits for a person: ${wait.question}\n  answer with: ${answersTo(wait, runId).join('   or: ')}`;
}
