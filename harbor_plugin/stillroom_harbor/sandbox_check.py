"""Starts one sandbox and says whether it works. `python -m stillroom_harbor.sandbox_check bwrap|plain`

Prints one JSON line: {"ok": true, "version", "protection"} or {"ok": false, "reason"}. `protection` says what holds here, as watched:

- `isolation`: "bubblewrap" | "none".
- `user`: who sandboxes run as, seen from the host: "own" (one user per sandbox) | "runner" (an ordinary user's, without any
  privilege inside) | "root" (the real root's own processes: the kernel's process limits do not bind them).
- `processLimit`: whether `limits.nproc` was seen to stop a command.
- `totalMemory`: "sampled" (looked at some times a second, and ended when over) | "none".
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
from stillroom_harbor.disk_use import is_ram_disk
from stillroom_harbor.plain import PlainSession
from stillroom_harbor.protection import nproc_counts_per_sandbox, sandbox_uid
from stillroom_harbor.runner_dir import remove_tree, runner_dir
from stillroom_harbor.sandbox_root import give

_FEW_PROCESSES = 12


async def check(mode: str) -> dict[str, object]:
    """Runs commands in a sandbox. Returns what runs them and what protects; raises with the reason if it does not work."""
    home = runner_dir()
    top = Path(tempfile.mkdtemp(prefix="check-", dir=home)).resolve()
    root = top / "fs"
    (root / "app").mkdir(parents=True)
    if mode == "bwrap":
        uid = sandbox_uid(home)
        give(root / "app", uid)
        runs = subprocess.run([bwrap_path(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
        session: BubblewrapSession | PlainSession = BubblewrapSession(top, root, home, False, "", [], uid)
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
            "processLimit": mode == "bwrap" and nproc_counts_per_sandbox() and await _process_limit_holds(session),
            "totalMemory": "sampled" if Path("/proc/self/stat").exists() else "none",
            "files": "ram" if is_ram_disk(top) else "disk",
            "userNamespaces": "open" if (await session.exec("unshare -U true", "/app", {}, 10)).return_code == 0 else "closed",
            "network": "none" if mode == "bwrap" else "host",
        }
    finally:
        await session.stop()
        remove_tree(top)
    return {"ok": True, "version": runs, "protection": protection}


async def _process_limit_holds(session: BubblewrapSession | PlainSession) -> bool:
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
