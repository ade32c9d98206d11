import { describe, expect, it } from 'vitest';
import type { BlobRef, TrialId } from '../ids.ts';
import { parseTrajectories, type TrajectoryDocument, trajectoriesIn, trajectoryDocument, trajectoryProblem } from './trajectory-file.ts';
import type { Trajectory } from './warm-up.ts';

const task = (id: string) => ({ id, path: `tasks/${id}`, digest: `digest-${id}` });
const train = [task('a'), task('b')];
const teacher = { model: 't', checkpoint: null, renderer: 'r' };
const source = { run_id: 'run', teacher, student_base_model: 's', agent: { name: 'turn', ref: 'builtin', hash: 'h' }, train };
const spans = `r/sha256:${'0'.repeat(64)}` as BlobRef;
const trajectory = (taskId: string, more: Partial<Trajectory> = {}): Trajectory => ({
  trialId: `${taskId}-w` as TrialId,
  taskId,
  passed: true,
  executed: true,
  sampledTokens: 7,
  spans,
  ...more,
});

const text = (trajectories: readonly Trajectory[]) => JSON.stringify(trajectoryDocument(source, trajectories));

function written(): TrajectoryDocument {
  const { document, problem } = parseTrajectories(text([trajectory('a'), trajectory('b', { spans: null })]));
  if (document === null) throw new Error(problem);
  return document;
}

it('reads what was written', () => {
  expect(trajectoriesIn(written())).toEqual([trajectory('a'), trajectory('b', { spans: null })]);
  expect(written()).toMatchObject({ task_ids: ['a', 'b'], trials: [{ task_digest: 'digest-a' }, { task_digest: 'digest-b' }] });
});

it.each([
  ['text', 'garbage', /^not JSON/],
  ['another document', '{"version": 1}', /teacher/],
  ['a later version', text([]).replace('"version":1', '"version":2'), /version/],
  ['a reference that is none', text([trajectory('a')]).replace('r/sha256:0', 'md5:'), /trials\.0\.spans: must be a blob/],
])('refuses %s', (_, text, problem) => expect(parseTrajectories(text).problem).toMatch(problem));

describe('trajectoryProblem', () => {
  const use = { teacher, train, holdout: [task('x')] };

  it('takes the trajectories of the same teacher on the same tasks, also on more of them', () => {
    expect(trajectoryProblem(written(), use)).toBeNull();
    expect(trajectoryProblem(written(), { ...use, train: [...train, task('c')] })).toBeNull();
  });

  it.each([
    ['another teacher', { teacher: { ...teacher, model: 'u' } }, /teacher's model is "t", this run's is "u"/],
    ['another checkpoint', { teacher: { ...teacher, checkpoint: 'tinker://x' } }, /checkpoint is null/],
    ['another renderer', { teacher: { ...teacher, renderer: 'q' } }, /renderer is "r"/],
    ['a held-out task', { holdout: [task('b')] }, /held-out tasks: b/],
    ['a task of another split', { train: [task('a')] }, /not in this run's training split: b/],
    ['a changed task', { train: [task('a'), { ...task('b'), digest: 'new' }] }, /changed since its episodes were played: b/],
  ])('refuses %s', (_, change, problem) => expect(trajectoryProblem(written(), { ...use, ...change })).toMatch(problem));

  it('looks at the tasks of the trials too, whatever the list of tasks says', () => {
    expect(trajectoryProblem({ ...written(), task_ids: [] }, { ...use, holdout: [task('a')] })).toMatch(/held-out tasks: a/);
  });
});
