"""Starts one sandbox and says whether it works. `python -m stillroom_harbor.sandbox_check bwrap|plain`

Prints one JSON line: {"ok": true, "version", "protection"} or {"ok": false, "reason"}. `protection` says what holds here, as watched:

- `isolation`: "bubblewrap" | "none".
- `user`: who sandboxes run as, seen from the host: "own" (one user per sandbox) | "runner" (an ordinary user's, without any
  privilege inside) | "root" (the real root's own processes: the kernel's process limits do not bind them).
- `processLimit`: what was seen to stop a command: "cgroup" (the sandbox's control group) | "ulimit" (`limits.nproc` alone) | "none".
- `totalMemory`: "cgroup" (the kernel was seen to end what was over) | "sampled" (looked at some times a second, and ended when over) | "none".
- `files`: "ram" (sandboxes' files take memory) | "disk".
- `userNamespaces`: "closed" | "open" (commands can make their own, and file systems in memory that are not counted).
- `network`: "none" | "host".
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from stillroom_harbor.bubblewrap import BubblewrapSession
from stillroom_harbor.bwrap_options import bwrap_path
from stillroom_harbor.cgroup import Group, new_group
from stillroom_harbor.disk_use import is_ram_disk
from stillroom_harbor.plain import PlainSession
from stillroom_harbor.protection import nproc_counts_per_sandbox, sandbox_uid
from stillroom_harbor.runner_dir import remove_tree, runner_dir
from stillroom_harbor.sandbox_root import give

_FEW_PROCESSES = 12
_GROUP_PROCESSES = 40
_GROUP_BYTES = 48 << 20


async def check(mode: str) -> dict[str, object]:
    """Runs commands in a sandbox. Returns what runs them and what protects; raises with the reason if it does not work."""
    home = runner_dir()
    top = Path(tempfile.mkdtemp(prefix="check-", dir=home)).resolve()
    root = top / "fs"
    (root / "app").mkdir(parents=True)
    group: Group | None = None
    if mode == "bwrap":
        uid = sandbox_uid(home)
        give(root / "app", uid)
        runs = subprocess.run([bwrap_path(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
        group = new_group(home, top.name, _GROUP_BYTES, _GROUP_PROCESSES)
        session: BubblewrapSession | PlainSession = BubblewrapSession(top, root, home, False, "", [], uid, group)
    elif mode == "plain":
        uid, runs, session = None, "plain processes, no isolation", PlainSession(top, root, "")
    else:
        raise ValueError(f'the mode must be "bwrap" or "plain", not {mode!r}')
    try:
        await session.start()
        result = await session.exec("echo works > file && cat file", "/app", {}, 10)
        if result.return_code != 0 or result.stdout != "works\n":
            raise RuntimeError(f"a command failed in the sandbox (exit {result.return_code}): {result.stderr or result.stdout}")
        protection = {
            "isolation": "bubblewrap" if mode == "bwrap" else "none",
            "user": "own" if uid is not None else "root" if os.geteuid() == 0 else "runner",
            "processLimit": await _process_limit(session, group) if mode == "bwrap" else "none",
            "totalMemory": await _total_memory(session, group),
            "files": "ram" if is_ram_disk(top) else "disk",
            "userNamespaces": "open" if (await session.exec("unshare -U true", "/app", {}, 10)).return_code == 0 else "closed",
            "network": "none" if mode == "bwrap" else "host",
        }
    finally:
        await session.stop()
        remove_tree(top)
    return {"ok": True, "version": runs, "protection": protection}


async def _process_limit(session: BubblewrapSession | PlainSession, group: Group | None) -> str:
    if group is not None:
        try:
            await session.exec(" | ".join(["sleep 0.2"] * (2 * _GROUP_PROCESSES)), "/app", {}, 1)
        except RuntimeError:
            pass  # as below
        if group.refused_forks() > 0:
            return "cgroup"
    return "ulimit" if nproc_counts_per_sandbox() and await _ulimit_holds(session) else "none"


async def _total_memory(session: BubblewrapSession | PlainSession, group: Group | None) -> str:
    if group is not None:
        await session.exec(f"head -c {2 * _GROUP_BYTES} /dev/zero | tail -c {2 * _GROUP_BYTES} > /dev/null", "/app", {}, 20)
        if group.oom_kills() > 0:
            return "cgroup"
    return "sampled" if Path("/proc/self/stat").exists() else "none"


async def _ulimit_holds(session: BubblewrapSession | PlainSession) -> bool:
    try:
        # Pipelines fork all their parts at once.
        crowd = " | ".join(["sleep 0.2"] * (2 * _FEW_PROCESSES))
        result = await session.exec(f"ulimit -u {_FEW_PROCESSES}; {crowd}", "/app", {}, 1)
    except RuntimeError:
        return True  # bash keeps trying to fork until the time is over
    return result.return_code != 0 or "fork" in (result.stderr or "")


def main() -> None:
    try:
        answer = asyncio.run(check(sys.argv[1]))
    except Exception as error:
        answer = {"ok": False, "reason": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
