import { execa } from 'execa';
import { expect, test } from 'vitest';
import { INSTALLED_AGENTS } from '../../core/run/installed-agents.ts';
import { harborPython } from '../../services/harbor/index.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

test('the agents that a harness document can name are those that harbor installs', async () => {
  const code = 'from harbor.agents.factory import AgentFactory; print("\\n".join(AgentFactory.registered_names()))';
  const { stdout } = await execa(await harborPython(PROJECT_ROOT), ['-c', code], { env: { HARBOR_TELEMETRY: '0' } });
  const others = ['oracle', 'nop', 'terminus-2', 'computer-1'];
  expect([...INSTALLED_AGENTS].sort()).toEqual(
    stdout
      .split('\n')
      .filter((name) => !others.includes(name))
      .sort(),
  );
});
