import { shellText } from './sloppiness.ts';
import type { QuickTask } from './tasks.ts';
import { promptText } from './tasks.ts';

/** A harbor task folder (schema 1.4) as relative path → text. */
export function taskFolder(task: QuickTask): Record<string, string> {
  const environment = Object.entries(task.files).map(([name, digit]) => [`environment/${name}`, `${digit}\n`]);
  return {
    'task.toml': taskToml(task),
    // No newline at the end: the prompt is exactly this text.
    'instruction.md': promptText(task),
    'environment/Dockerfile': dockerfile(task),
    ...Object.fromEntries(environment),
    'tests/test.sh': testScript(task),
    'solution/solve.sh': `#!/bin/bash\nset -e\n${task.steps.map((step) => `${shellText(step)}\n`).join('')}`,
  };
}

function taskToml(task: QuickTask): string {
  return `schema_version = "1.4"

[task]
name = "stillroom-quickstart/${task.id}"
version = "1.0.0"

[metadata]
kind = "${task.kind}"

[agent]
timeout_sec = 30.0

[verifier]
timeout_sec = 15.0

[environment]
network_mode = "no-network"
workdir = "/app"
build_timeout_sec = 300.0
cpus = 1
memory_mb = 512
`;
}

/** Used by container back ends only; the process sandbox copies the other files of environment/ itself. */
function dockerfile(task: QuickTask): string {
  return `FROM debian:bookworm-slim\nWORKDIR /app\nCOPY ${Object.keys(task.files).join(' ')} /app/\n`;
}

/**
 * The verifier: reward 1 if the work directory holds exactly the expected files. Shell builtins only, so that it starts no
 * process, and nothing newer than bash 3.2. `read -d ''` keeps final newlines; it succeeds only on a NUL byte, which no task expects.
 */
function testScript(task: QuickTask): string {
  const expected = Object.entries(task.expected);
  const checks = expected.map(([name, bytes]) => `holds ${name} $'${bytes.replaceAll('\n', '\\n')}' || reward=0\n`);
  return `#!/bin/bash
holds() {
  local content
  [ -f "$1" ] && [ ! -L "$1" ] && ! IFS= read -r -d '' content < "$1" && [ "$content" = "$2" ]
}
reward=1
entries=0
for entry in * .[!.]* ..?*; do
  if [ -e "$entry" ] || [ -L "$entry" ]; then entries=$((entries + 1)); fi
done
[ "$entries" -eq ${expected.length} ] || reward=0
${checks.join('')}echo "$reward" > "\${LOGS_DIR:-/logs}/verifier/reward.txt"
`;
}
