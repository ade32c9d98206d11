"""Starts one sandbox and says whether it works. `python -m stillroom_harbor.sandbox_check bwrap|plain`

Prints one JSON line: {"ok": true, "version"} or {"ok": false, "reason"}.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from stillroom_harbor.bubblewrap import BubblewrapSession
from stillroom_harbor.bwrap_options import bwrap_path
from stillroom_harbor.plain import PlainSession
from stillroom_harbor.runner_dir import remove_tree, runner_dir


async def check(mode: str) -> str:
    """Runs one command in a sandbox. Returns what runs it; raises with the reason if it does not work."""
    home = runner_dir()
    top = Path(tempfile.mkdtemp(prefix="check-", dir=home)).resolve()
    root = top / "fs"
    (root / "app").mkdir(parents=True)
    if mode == "bwrap":
        session: BubblewrapSession | PlainSession = BubblewrapSession(top, root, home, False, "", [])
        runs = subprocess.run([bwrap_path(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    elif mode == "plain":
        session, runs = PlainSession(top, root, ""), "plain processes, no isolation"
    else:
        raise ValueError(f'the mode must be "bwrap" or "plain", not {mode!r}')
    try:
        await session.start()
        result = await session.exec("echo works > file && cat file", "/app", {}, 10)
        if result.return_code != 0 or result.stdout != "works\n":
            raise RuntimeError(f"a command failed in the sandbox (exit {result.return_code}): {result.stderr or result.stdout}")
    finally:
        await session.stop()
        remove_tree(top)
    return runs


def main() -> None:
    try:
        answer = {"ok": True, "version": asyncio.run(check(sys.argv[1]))}
    except Exception as error:
        answer = {"ok": False, "reason": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
