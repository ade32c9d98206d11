import type { RuleInput } from '../../trainer/faults/plan.ts';
import { KEY } from '../trainer-process.ts';

/** A trainer's fault plan from outside: `on('asample', { kind: 'drop' })` is a rule. */
export const on = (path: string, fault: RuleInput['fault'], more: Omit<RuleInput, 'on' | 'fault'> = {}): RuleInput => ({
  on: path,
  fault,
  ...more,
});

export type RuleReport = { readonly matched: number; readonly fired: number };

/** Puts the rules in force; what was counted and lost before is forgotten. */
export async function putFaults(url: string, ...rules: readonly RuleInput[]): Promise<void> {
  const answer = await fetch(`${url}/faults`, { method: 'PUT', headers: HEADERS, body: JSON.stringify(rules) });
  if (!answer.ok) throw new Error(`PUT /faults: ${answer.status} ${await answer.text()}`);
}

export async function faultReports(url: string): Promise<readonly RuleReport[]> {
  const answer = await fetch(`${url}/faults`, { headers: HEADERS });
  return ((await answer.json()) as { readonly rules: readonly RuleReport[] }).rules;
}

/** How often each rule's fault has happened, in the plan's order. */
export const firedBy = async (url: string): Promise<readonly number[]> => (await faultReports(url)).map(({ fired }) => fired);

const HEADERS = { 'x-api-key': KEY, 'content-type': 'application/json' };
