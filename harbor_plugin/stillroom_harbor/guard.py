"""Ends a sandbox's processes when all of them together, or all its files, are more than its limits allow: the kernel's own limits count
single processes only. What is over is seen at the next look, some tenths of a second later."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from stillroom_harbor.cgroup import Group
from stillroom_harbor.disk_use import shrink
from stillroom_harbor.limits import Limits
from stillroom_harbor.memory import Seen

_MB = 1 << 20
_CROWD_SHARE = 0.9
_CROWD_SEC = 2.0


class Guard:
    """`kill(reason)` ends the processes. `reasons` are those it gave so far, in order."""

    def __init__(self, limits: Limits, root: Path, on_ram: bool, kill: Callable[[str], None], group: Group | None):
        self._limits, self._root, self._on_ram, self._kill = limits, root, on_ram, kill
        self._group, self._oom_kills, self._oom_lock = group, 0, threading.Lock()
        self._disk_bytes = 0
        self._crowded_since: float | None = None
        self._is_over_full = False
        self.reasons: list[str] = []

    def look(self, seen: Seen) -> None:
        """Called from the sampler's thread."""
        self._disk_bytes = seen.disk_bytes
        if self.out_of_memory() is None and (reason := self._broken(seen)):
            self.reasons.append(reason)
            self._kill(reason)

    def out_of_memory(self) -> str | None:
        """Why, if the kernel ended processes in the control group since this was asked last: the others are ended then, too. From any thread."""
        if self._group is None:
            return None
        with self._oom_lock:
            before, self._oom_kills = self._oom_kills, self._group.oom_kills()
            if self._oom_kills <= before:
                return None
            reason = self._over_memory() or self._memory_words()
            # Files on a RAM disk are in the group: with too many of them nothing could start again.
            self._is_over_full = self._is_over_full or self._on_ram
            self.reasons.append(reason)
            self._kill(reason)
            return reason

    def _over_memory(self) -> str | None:
        memory = self._limits["total_memory_mb"]
        is_full = self._on_ram and memory is not None and self._disk_bytes > memory * _MB // 2
        return self._full(self._memory_words()) if is_full else self._memory_words()

    def _memory_words(self) -> str:
        memory = self._limits["total_memory_mb"]
        return f"the sandbox used more than {memory} MB of memory and its processes were ended (limits.total_memory_mb)"

    def _broken(self, seen: Seen) -> str | None:
        memory, disk, files, nproc = (self._limits[name] for name in ("total_memory_mb", "disk_mb", "files", "nproc"))
        if disk is not None and seen.disk_bytes > disk * _MB:
            return self._full(f"the sandbox's files took more than {disk} MB and its processes were ended (limits.disk_mb)")
        if files is not None and seen.files > files:
            return self._full(f"the sandbox held more than {files} files and its processes were ended (limits.files)")
        if memory is not None and seen.memory_bytes > memory * _MB:
            return self._over_memory()
        if nproc is None or seen.processes < nproc * _CROWD_SHARE:
            self._crowded_since = None
        elif self._crowded_since is None:
            self._crowded_since = time.monotonic()
        elif time.monotonic() - self._crowded_since > _CROWD_SEC:
            self._crowded_since = None
            return f"the sandbox was at its limit of {nproc} processes and all were ended (limits.nproc)"
        return None

    def _full(self, reason: str) -> str | None:
        if self._is_over_full:
            return None  # said already; the files are removed before the next command
        self._is_over_full = True
        return f"{reason}; its largest files were removed"

    @property
    def must_make_room(self) -> bool:
        return self._is_over_full

    def make_room(self) -> None:
        """Brings the files back to half of what is allowed. Nothing may run in the sandbox."""
        bounds = [self._limits["disk_mb"], self._limits["total_memory_mb"] if self._on_ram else None]
        max_bytes = min((bound * _MB // 2 for bound in bounds if bound is not None), default=1 << 62)
        shrink(self._root, max_bytes, (self._limits["files"] or 1 << 62) // 2)
        self._is_over_full = False
