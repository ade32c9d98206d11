"""A sandbox that nobody samples, with a control group, in which commands ask for too much. Prints what became of them as JSON."""

import asyncio
import json
import tempfile
from pathlib import Path

from stillroom_harbor.bubblewrap import BubblewrapSession
from stillroom_harbor.cgroup import new_group
from stillroom_harbor.guard import Guard
from stillroom_harbor.limits import parse_limits
from stillroom_harbor.protection import sandbox_uid
from stillroom_harbor.runner_dir import runner_dir

_HOG = "for i in 1 2 3 4 5 6; do head -c 40M /dev/zero | tail -c 40M | sleep 5 & done; wait"


async def main() -> None:
    home = runner_dir()
    top = Path(tempfile.mkdtemp(prefix="sandbox-", dir=home)).resolve()
    (top / "fs/app").mkdir(parents=True)
    group = new_group(home, top.name, 96 << 20, 40)
    assert group is not None
    session = BubblewrapSession(top, top / "fs", home, False, "", [], sandbox_uid(home), group)
    guard = Guard(parse_limits({"total_memory_mb": 96}), top / "fs", False, session.kill, group)
    session.out_of_memory = guard.out_of_memory
    await session.start()
    told = []
    for command in (_HOG + "; sleep 0.1", "echo again", "{ head -c 200M /dev/zero | tail -c 200M > /dev/null; } & wait; exit 0", "echo again"):
        result = await session.exec(command, "/", {}, 30)
        told.append({"code": result.return_code, "stdout": result.stdout, "stderr": (result.stderr or "").strip().splitlines()[-1:]})
    try:
        await session.exec(" | ".join(["sleep 0.5"] * 80), "/", {}, 1)
    except RuntimeError:
        pass  # bash keeps trying to fork until the time is over
    forks = group.refused_forks()
    await session.stop()
    left = [str(folder) for folder in group.folders.values() if folder.exists()]
    print(json.dumps({"told": told, "reasons": guard.reasons, "forksRefused": forks > 0, "left": left}))


asyncio.run(main())
