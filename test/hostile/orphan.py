"""A runner with a control group that holds a process. Prints the group's folders and the process, and waits for its end."""

import json
import subprocess
import sys

from stillroom_harbor.cgroup import new_group
from stillroom_harbor.runner_dir import runner_dir

group = new_group(runner_dir(), "sandbox-left", 64 << 20, 20)
assert group is not None
doors = group.doors()
enter = "".join(f"echo 0 >&{door}; " for door in doors)
process = subprocess.Popen(["bash", "-c", enter + "exec sleep 300"], pass_fds=doors, stdout=subprocess.DEVNULL)
while not all(str(process.pid) in (folder / "cgroup.procs").read_text().split() for folder in group.folders.values()):
    pass
print(json.dumps({"folders": [str(folder) for folder in group.folders.values()], "pid": process.pid}), flush=True)
sys.stdin.read()
