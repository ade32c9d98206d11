"""How much a directory holds, counted a little at a time: a sandbox may hold a million files, and a look must stay cheap."""

import os
from functools import cache
from pathlib import Path

INODE_BYTES = 1024  # what an empty file costs: about that on a RAM disk, more on others


@cache
def is_ram_disk(path: Path) -> bool:
    """Whether files at `path` take memory."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted:
            return after.split()[0] in ("tmpfs", "ramfs")
    return False


class DiskUse:
    """The size of everything below `top`, walk after walk. `bytes` is what is known so far, and never less than a walk under way found."""

    def __init__(self, top: Path):
        self._top = str(top)
        self._pending: list[str] = [self._top]
        self._found = 0
        self._whole = 0
        self._links: set[int] = set()

    @property
    def bytes(self) -> int:
        return max(self._whole, self._found)

    def step(self, max_entries: int) -> bool:
        """Looks at about `max_entries` more entries. True when this ended a walk; the next step begins a new one."""
        looked = 0
        while self._pending and looked < max_entries:
            looked += self._look(self._pending.pop())
        if self._pending:
            return False
        self._whole, self._found = self._found, 0
        self._pending, self._links = [self._top], set()
        return True

    def walk(self) -> int:
        """One whole walk from the start."""
        self._pending, self._found, self._links = [self._top], 0, set()
        while not self.step(100_000):
            pass
        return self._whole

    def _look(self, folder: str) -> int:
        looked = 1
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    looked += 1
                    self._count(entry)
        except OSError:
            pass  # gone, or closed to us; what is in it cannot grow without being opened first
        return looked

    def _count(self, entry: os.DirEntry[str]) -> None:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            return
        if info.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
            if info.st_ino in self._links:
                return
            self._links.add(info.st_ino)
        self._found += INODE_BYTES + info.st_blocks * 512
        if entry.is_dir(follow_symlinks=False):
            self._pending.append(entry.path)
