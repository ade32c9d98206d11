"""How much memory the sandboxes of each trial take: one thread looks at all of them a few times a second.

Memory is that of a sandbox's processes, shared pages counted once, plus its files if they lie on a RAM disk. What lives shorter than
the time between two looks is not seen.
"""

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stillroom_harbor.disk_use import DiskUse, is_ram_disk
from stillroom_harbor.process_memory import Process, all_processes, proportional_bytes, trees

_INTERVAL_SEC = 0.3
_MAX_SHARE = 0.015  # of one core, at which looks become rarer
_MAX_SHARE_WHEN_FILLING = 0.1
_ENTRIES_PER_LOOK = 400
_ENTRIES_WHEN_FILLING = 20_000

_peaks: dict[str, int] = {}


def peak_bytes(trial_name: str) -> int | None:
    """The most memory a trial's sandbox was seen to use so far; None if it was never looked at."""
    return _peaks.get(trial_name)


def forget(trial_name: str) -> None:
    """Drops what is known of a trial."""
    _peaks.pop(trial_name, None)


@dataclass(frozen=True)
class Seen:
    """One look at a sandbox."""

    processes: int
    memory_bytes: int
    disk_bytes: int
    files: int


@dataclass(eq=False)
class Watch:
    """A sandbox that is looked at until `close`. `roots` tells the processes that all others descend from, `on_look` hears what was seen, in the thread."""

    trial_name: str
    top: Path
    roots: Callable[[], list[int]]
    on_look: Callable[[Seen], None]
    disk: DiskUse = field(init=False)
    on_ram: bool = field(init=False)
    _resident: int = 0
    _proportional: int = 0

    def __post_init__(self) -> None:
        self.disk, self.on_ram = DiskUse(self.top), is_ram_disk(self.top)

    def close(self) -> None:
        _sampler.remove(self)

    def look(self, processes: list[Process]) -> None:
        self.disk.step(_ENTRIES_WHEN_FILLING if self.disk.is_filling() else _ENTRIES_PER_LOOK)
        resident = sum(process.resident_bytes for process in processes)
        # Resident memory counts shared pages again and again, but is cheap and never too low: only news needs the dear look.
        if abs(resident - self._resident) > self._resident // 50:
            self._resident, self._proportional = resident, proportional_bytes(processes)
        memory = self._proportional + (self.disk.bytes if self.on_ram else 0)
        _peaks[self.trial_name] = max(memory, _peaks.get(self.trial_name, 0))
        self.on_look(Seen(len(processes), memory, self.disk.bytes, self.disk.files))


class _Sampler:
    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        with self._changed:
            self._watches.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sandbox-memory", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, watch: Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._watches:
                    self._changed.wait()
                watches = list(self._watches)
            filling = any(watch.disk.is_filling() for watch in watches)
            began = time.thread_time()
            try:
                self._look(watches)
            except Exception:
                # One look that fails must not end all others: nothing else bounds the sandboxes' memory.
                traceback.print_exc()
            share = _MAX_SHARE_WHEN_FILLING if filling else _MAX_SHARE
            time.sleep(max(_INTERVAL_SEC, (time.thread_time() - began) / share))

    def _look(self, watches: list[Watch]) -> None:
        roots = {watch: watch.roots() for watch in watches}
        found = trees({pid for pids in roots.values() for pid in pids}, all_processes())
        for watch in watches:
            with self._changed:
                if watch not in self._watches:
                    continue
            watch.look([process for pid in roots[watch] for process in found[pid]])


_sampler = _Sampler()


def watch(trial_name: str, top: Path, roots: Callable[[], list[int]], on_look: Callable[[Seen], None]) -> Watch:
    """Looks at a sandbox from now on; `top` is the directory that holds all its files."""
    made = Watch(trial_name, top, roots, on_look)
    _sampler.add(made)
    return made
