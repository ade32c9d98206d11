"""Control groups, where we may make them: the kernel then bounds a sandbox's memory and processes itself, with nothing between two looks.

A group is made below the one that we are in already, so whatever bounds us bounds our sandboxes too. With cgroup v2 a group that holds
processes has no groups with limits below it: there it is made beside ours, if the parent was delegated (systemd: `Delegate=` with
`DelegateSubgroup=`). Nobody else's group is touched. Every path is noted in the runner's directory before it is made, for the sweep.
"""

import os
import time
from functools import cache
from pathlib import Path

from stillroom_harbor.exact_process import kill_if

_NOTES = "cgroups"
_GONE_SEC = 3.0
_LIMIT_FILES = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max",)}
_OOM_FILES = ("memory.events", "memory.oom_control")


class Group:
    """One sandbox's groups by controller; with cgroup v2 both are the same directory."""

    def __init__(self, folders: dict[str, Path]):
        self.folders = folders

    def doors(self) -> list[int]:
        """Open files; a process that writes "0" into each of them is in the group, and so is all that it starts. The caller closes them."""
        try:
            return [os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for folder in dict.fromkeys(self.folders.values())]
        except OSError:
            return []  # somebody removed it: memory is sampled, too

    def oom_kills(self) -> int:
        """How many of its processes the kernel ended so far because the memory limit was reached."""
        folder = self.folders.get("memory")
        return 0 if folder is None else max(_count(folder / name, "oom_kill") for name in _OOM_FILES)

    def refused_forks(self) -> int:
        """How many times no more processes could start."""
        return _count(self.folders["pids"] / "pids.events", "max") if "pids" in self.folders else 0

    def remove(self) -> None:
        """Call it, in a thread, when all processes were told to end: waits for that, and ends what did not."""
        for folder in dict.fromkeys(self.folders.values()):
            _remove(folder)


def new_group(home: Path, name: str, memory_bytes: int | None, processes: int | None) -> Group | None:
    """A group with these limits for one sandbox of the runner whose directory is `home`; None where none can be had. Never raises."""
    folders = {}
    for controller, limit in (("memory", memory_bytes), ("pids", processes)):
        parent = _parent(controller)
        if limit is None or parent is None:
            continue
        folder = parent / f"{home.name}.{name}"
        try:
            if folder not in folders.values():
                with open(home / _NOTES, "a") as notes:
                    notes.write(f"{folder}\n")
                folder.mkdir()
            folders[controller] = folder
            _set_limit(folder, controller, limit)
        except OSError:
            if folders.pop(controller, None) and folder not in folders.values():
                _remove(folder)
    return Group(folders) if folders else None


def sweep_groups(home: Path) -> None:
    """Removes the groups of a dead runner, and ends what is left in them."""
    try:
        noted = (home / _NOTES).read_text().splitlines()
    except OSError:
        return
    for folder in dict.fromkeys(Path(line) for line in noted):
        if folder.name.startswith(f"{home.name}."):
            _remove(folder)


def _set_limit(folder: Path, controller: str, limit: int) -> None:
    file = next((folder / name for name in _LIMIT_FILES[controller] if (folder / name).exists()), None)
    if file is None:
        raise OSError(f"{folder} takes no limit of {controller}")
    file.write_text(str(limit))
    if controller == "memory":
        if not any((folder / file).exists() and "oom_kill " in (folder / file).read_text() for file in _OOM_FILES):
            raise OSError(f"{folder} does not tell when memory is out")
        for swap, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", limit)):
            if (folder / swap).exists():
                (folder / swap).write_text(str(value))


@cache
def _parent(controller: str) -> Path | None:
    """Where groups of ours can be made, for one controller."""
    try:
        memberships = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return None
    for number, controllers, path in memberships:
        is_v2 = number == "0"
        if not is_v2 and controller not in controllers.split(","):
            continue
        for fields in mounts:
            kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
            if kind != ("cgroup2" if is_v2 else "cgroup") or not (is_v2 or controller in options):
                continue
            inside = os.path.relpath(path, fields[3])
            own = Path(fields[4]) / inside
            if inside.startswith("..") or not own.is_dir():
                continue
            for parent in (own, own.parent) if is_v2 else (own,):
                if _is_ours(parent, controller, is_v2, parent == own):
                    return parent
    return None


def _is_ours(parent: Path, controller: str, is_v2: bool, is_own: bool) -> bool:
    if not os.access(parent, os.W_OK | os.X_OK):
        return False
    try:
        if not is_v2:
            hierarchy = parent / "memory.use_hierarchy"
            return not hierarchy.exists() or hierarchy.read_text().strip() == "1"  # else our own limit would not count it
        if controller not in (parent / "cgroup.subtree_control").read_text().split():
            return False
        return is_own or os.getxattr(parent, "user.delegate") == b"1"
    except OSError:
        return False


def _count(file: Path, name: str) -> int:
    try:
        return next((int(line.split()[1]) for line in file.read_text().splitlines() if line.split()[0] == name), 0)
    except (OSError, ValueError, IndexError):
        return 0


def _remove(folder: Path) -> None:
    end = time.monotonic() + _GONE_SEC
    while folder.is_dir() and time.monotonic() < end:
        try:
            folder.rmdir()
            return
        except OSError:
            for pid in _members(folder):
                kill_if(pid, lambda pid=pid: pid in _members(folder))
            time.sleep(0.01)


def _members(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split() if pid != "0"]
    except OSError:
        return []
