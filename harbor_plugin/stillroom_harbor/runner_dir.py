"""Where sandboxes live: one directory per Python process, locked while the process lives.

A process that was SIGKILLed leaves its directory behind; the lock is gone with it, so `sweep` can tell leftovers from the
directories of processes that are still at work, also across process-id namespaces that share one /dev/shm. A process that was
stopped (SIGSTOP) keeps its lock; the directory says who it is and who drives it, so that one whose driver is dead can be ended.
"""

import atexit
import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from stillroom_harbor.cgroup import sweep_groups
from stillroom_harbor.exact_process import born, kill_if, namespace

PREFIX = "stillroom-harbor-"
MARKER = "STILLROOM_SANDBOX_DIR"
_MIN_FREE_BYTES = 256 << 20
_OWNER = "owner.json"
_END_SEC = 5.0
# Taken now: who started us may be gone by the time a directory is made.
_DRIVER = os.getppid()
_DRIVER_BORN = born(_DRIVER)

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
        (made / _OWNER).write_text(json.dumps(_owner()))
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
            if _take(lock) or (_end_orphan(left) and _take(lock, _END_SEC)):
                kill_marked(left)
                kill_half_started(left)
                sweep_groups(left)
                remove_tree(left)
                removed.append(left)
        finally:
            os.close(lock)
    return removed


def _take(lock: int, wait_sec: float = 0.0) -> bool:
    end = time.monotonic() + wait_sec
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)


def _owner() -> dict[str, object]:
    pid = os.getpid()
    return {"namespace": namespace(), "pid": pid, "born": born(pid), "driver": _DRIVER, "driverBorn": _DRIVER_BORN}


def _end_orphan(left: Path) -> bool:
    """Ends the process that holds a directory if whoever drove it is gone: its trials are nobody's, though it may not notice."""
    try:
        owner = json.loads((left / _OWNER).read_text())
        known = owner["namespace"] is not None and None not in (owner["born"], owner["driverBorn"])
        if not known or owner["namespace"] != namespace() or born(owner["driver"]) == owner["driverBorn"]:
            return False
        return kill_if(owner["pid"], lambda: born(owner["pid"]) == owner["born"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def kill_marked(top: Path) -> None:
    """Linux: ends processes of plain-mode sandboxes under `top`, found by the variable they inherited (setsid does not hide it)."""
    wanted = f"{MARKER}={top}".encode()

    def is_marked(environ: Path) -> bool:
        try:
            return any(pair == wanted or pair.startswith(wanted + b"/") for pair in environ.read_bytes().split(b"\0"))
        except OSError:
            return False

    for environ in Path("/proc").glob("[0-9]*/environ"):
        if is_marked(environ):
            kill_if(int(environ.parent.name), lambda environ=environ: is_marked(environ))


def kill_half_started(top: Path) -> None:
    """Linux: ends sandboxes whose runner was killed while they started. Such a one waits for a word that nobody will say, and its tie to its
    parent does not hold yet; it is known by its log below `top`."""
    below = f"{top.resolve()}/"

    def is_from_there(log: Path) -> bool:
        try:
            return os.readlink(log).startswith(below)
        except OSError:
            return False

    for log in Path("/proc").glob("[0-9]*/fd/1"):
        if is_from_there(log):
            kill_if(int(log.parts[2]), lambda log=log: is_from_there(log))


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
