"""Where sandboxes live: one directory per Python process, locked while the process lives.

A process that was SIGKILLed leaves its directory behind; the lock is gone with it, so `sweep` can tell leftovers from the
directories of processes that are still at work, also across process-id namespaces that share one /dev/shm.
"""

import atexit
import fcntl
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path

PREFIX = "stillroom-harbor-"
MARKER = "STILLROOM_SANDBOX_DIR"
_MIN_FREE_BYTES = 256 << 20

_dirs: dict[Path, tuple[Path, int]] = {}


def default_root() -> Path:
    """`STILLROOM_SANDBOX_ROOT` if set, else the RAM disk /dev/shm if it has room (3x cheaper trials), else the temp directory."""
    if named := os.environ.get("STILLROOM_SANDBOX_ROOT"):
        return Path(named)
    shm = Path("/dev/shm")
    if shm.is_dir() and os.access(shm, os.W_OK | os.X_OK):
        free = os.statvfs(shm)
        if free.f_bavail * free.f_frsize >= _MIN_FREE_BYTES:
            return shm
    return Path(tempfile.gettempdir())


def runner_dir(root: str | Path | None = None) -> Path:
    """This process's own directory (mode 0700) under root; made on first use, removed at exit."""
    base = Path(root).resolve() if root is not None else default_root().resolve()
    if base not in _dirs:
        base.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        lock = os.open(made / "lock.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(made / "lock.new", made / "lock")  # a sweeper only looks at directories with a "lock": no unlocked moment
        _dirs[base] = (made, lock)
        atexit.register(remove_tree, made)
    return _dirs[base][0]


def sweep(root: str | Path | None = None) -> list[Path]:
    """Removes what dead processes left under root, their plain-mode processes included. Returns what was removed."""
    base = Path(root).resolve() if root is not None else default_root().resolve()
    removed = []
    for left in base.glob(f"{PREFIX}*"):
        try:
            lock = os.open(left / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            kill_marked(left)
            remove_tree(left)
            removed.append(left)
        finally:
            os.close(lock)
    return removed


def kill_marked(top: Path) -> None:
    """Linux: ends processes of plain-mode sandboxes under `top`, found by the variable they inherited (setsid does not hide it)."""
    wanted = f"{MARKER}={top}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            marks = [pair for pair in environ.read_bytes().split(b"\0") if pair == wanted or pair.startswith(wanted + b"/")]
            if marks:
                os.kill(int(environ.parent.name), signal.SIGKILL)
        except OSError:
            continue


def remove_tree(top: Path) -> None:
    """Removes a directory even if the commands that ran in it took away their own permissions. Never follows links."""
    shutil.rmtree(top, ignore_errors=True)
    if not top.exists():
        return
    pending = [top]
    while pending:
        here = pending.pop()
        try:
            os.chmod(here, stat.S_IRWXU)
            pending += [Path(entry.path) for entry in os.scandir(here) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    shutil.rmtree(top, ignore_errors=True)
