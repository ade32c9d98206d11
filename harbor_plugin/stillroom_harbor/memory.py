"""How much memory the sandboxes of each trial take: one thread looks at all of them a few times a second.

Memory is that of a sandbox's processes, shared pages counted once, plus its files if they lie on a RAM disk. What lives shorter than
the time between two looks is not seen.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stillroom_harbor.disk_use import DiskUse, is_ram_disk
from stillroom_harbor.process_memory import Process, all_processes, proportional_bytes, trees

_INTERVAL_SEC = 0.3
_MAX_SHARE = 0.015  # of one core, at which looks become rarer
_ENTRIES_PER_LOOK = 400

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


@dataclass(eq=False)
class Watch:
    """A sandbox that is looked at until `close`. `first_pid` tells its first process now, `on_look` hears what was seen, in the thread."""

    trial_name: str
    top: Path
    first_pid: Callable[[], int | None]
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
        self.disk.step(_ENTRIES_PER_LOOK)
        resident = sum(process.resident_bytes for process in processes)
        # Resident memory counts shared pages again and again, but is cheap and never too low: only news needs the dear look.
        if abs(resident - self._resident) > self._resident // 50:
            self._resident, self._proportional = resident, proportional_bytes(processes)
        memory = self._proportional + (self.disk.bytes if self.on_ram else 0)
        _peaks[self.trial_name] = max(memory, _peaks.get(self.trial_name, 0))
        self.on_look(Seen(len(processes), memory, self.disk.bytes))


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
            began = time.thread_time()
            self._look(watches)
            time.sleep(max(_INTERVAL_SEC, (time.thread_time() - began) / _MAX_SHARE))

    def _look(self, watches: list[Watch]) -> None:
        firsts = {watch: pid for watch in watches if (pid := watch.first_pid()) is not None}
        found = trees(firsts.values(), all_processes())
        for watch in watches:
            with self._changed:
                if watch not in self._watches:
                    continue
            watch.look(found.get(firsts.get(watch, -1), []))


_sampler = _Sampler()


def watch(trial_name: str, top: Path, first_pid: Callable[[], int | None], on_look: Callable[[Seen], None]) -> Watch:
    """Looks at a sandbox from now on; `top` is the directory that holds all its files."""
    made = Watch(trial_name, top, first_pid, on_look)
    _sampler.add(made)
    return made
