import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { faultSchema } from '../trainer/faults/fault-schemas.ts';
import { readPlan } from '../trainer/faults/plan.ts';

const page = readFileSync(new URL('./trainer-faults.md', import.meta.url), 'utf8');

it('shows every fault, and only such as the trainer takes', () => {
  const examples = [...page.matchAll(/`(\{ "kind": .*? \})`/g)].map(([, example]) => JSON.parse(example ?? '') as { kind: string });
  readPlan(JSON.stringify(examples.map((fault) => ({ on: '*', fault }))), 'the page');
  const kinds = faultSchema.options.map((option) => option.shape.kind.value);
  expect(new Set(examples.map(({ kind }) => kind))).toEqual(new Set(kinds));
});

it('shows a plan that the trainer takes', () => {
  const [, plan] = /```json\n(.*?)```/s.exec(page) ?? [];
  expect(readPlan(plan ?? '', 'the page')).toHaveLength(3);
});
