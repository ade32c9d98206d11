import { chmod, cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { HarborRunner, indexTasks, TaskCache } from '../../services/harbor/index.ts';
import { Setting } from './setting.ts';

test('a task of a repository and one of a registry file are fetched, and played to their reward', async () => {
  await using setting = await Setting.make();
  const [repo, projectRoot] = [join(setting.dir, 'repo'), join(setting.dir, 'project')];
  for (const name of ['lone', 'listed']) await cp(join(setting.dir, 'tasks/copy'), join(repo, 'bench', name), { recursive: true });
  const git = (...args: string[]) => execa('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-C', repo, ...args]);
  await git('init', '--quiet', '--initial-branch=main');
  await git('config', 'uploadpack.allowAnySHA1InWant', 'true');
  await git('add', '-A');
  await git('commit', '--quiet', '-m', 'tasks');
  const git_url = `file://${repo}`;
  await mkdir(projectRoot);
  const listed = { name: 'listed', git_url, git_commit_id: 'main', path: 'bench/listed' };
  await writeFile(join(projectRoot, 'registry.json'), JSON.stringify([{ name: 'set', version: '1', tasks: [listed] }]));

  const cache = new TaskCache({ dir: join(projectRoot, 'cache'), projectRoot });
  const template = {
    environment: { type: 'docker' },
    tasks: [{ path: 'bench/lone', git_url, git_commit_id: 'main' }],
    datasets: [{ name: 'set', registry_path: 'registry.json' }],
  };
  const pinning = cache.pinning();
  const index = await indexTasks(template, projectRoot, pinning.reader);
  const pins = await pinning.pin((await index.find(['lone', 'listed'])).filter((task) => task !== null));
  // The branch moves on to a grader that nobody passes.
  for (const { path } of pins) await writeFile(join(repo, path, 'tests/test.sh'), 'echo 0 > "$LOGS_DIR/verifier/reward.txt"\n');
  for (const { path } of pins) await chmod(join(repo, path, 'tests/test.sh'), 0o755);
  await git('commit', '--quiet', '-am', 'harder');

  await using runner = await HarborRunner.start(setting.options);
  const worker = new TaskCache({ dir: join(setting.dir, 'elsewhere'), projectRoot: join(setting.dir, 'other-root') });
  const opened = await Promise.all([...pins, ...pins].map((pin) => worker.open(pin)));
  const runs = await Promise.all(opened.map((taskDir) => setting.run(runner, ['cp sun map', 'done'], { taskDir })));
  expect(runs.map(({ reward }) => reward)).toEqual([1, 1, 1, 1]);
});
