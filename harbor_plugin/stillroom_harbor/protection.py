"""What protects the machine from its sandboxes here: it depends on who the runner is and on what the kernel grants."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from stillroom_harbor.bwrap_options import bwrap_path
from stillroom_harbor.sandbox_user import is_real_root, new_uid, reachable, reachable_program


def sandbox_uid(home: Path) -> int | None:
    """A user for one more sandbox, or None if it is to start as ourselves. `home` is the runner's directory."""
    return new_uid() if is_real_root() and not _why_not_switch(home) else None


@cache
def _why_not_switch(home: Path) -> str:
    """Starts bubblewrap as another user once; empty if that works. Says on stderr if not: sandboxes are root's own processes then."""
    try:
        program = reachable_program(Path(bwrap_path()), home)
        uid = new_uid()
        args = ["--unshare-user", "--unshare-pid", "--ro-bind", "/usr", "/usr", "--ro-bind", str(reachable(home, home)), "/tmp", "--"]
        started = subprocess.run(
            ["bwrap", *args, "/usr/bin/env", "-i", "PATH=/usr/bin", "true"],
            executable=program,
            user=uid,
            group=uid,
            extra_groups=[],
            capture_output=True,
            text=True,
            cwd="/",
        )
        why = "" if started.returncode == 0 or "execvp" in started.stderr else started.stderr.strip()
    except (OSError, RuntimeError) as error:
        why = str(error)
    if why:
        words = "sandboxes start as root, because starting them as an unprivileged user failed; limits.nproc does not bind them"
        print(f"{words}: {why}", file=sys.stderr, flush=True)
    return why


@cache
def nproc_counts_per_sandbox() -> bool:
    """Since Linux 5.14 the kernel counts a user's processes per user namespace, and a sandbox has its own."""
    try:
        major, minor = os.uname().release.split(".")[:2]
        return sys.platform == "linux" and (int(major), int(minor)) >= (5, 14)
    except ValueError:
        return False
