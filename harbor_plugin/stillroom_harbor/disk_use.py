"""How much a directory holds, counted a little at a time: a sandbox may hold a million files, and a look must stay cheap."""

import os
import stat
from functools import cache
from pathlib import Path

_INODE_BYTES = 1024  # what an empty file costs: about that on a RAM disk, more on others
_FILLING_BYTES = 64 << 20
_FILLING_FILES = 5000
_BIG_FILE_BYTES = 1 << 20


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
    """The size of everything below `top`, walk after walk; never less than what a walk under way found already."""

    def __init__(self, top: Path):
        self._top = str(top)
        self._whole = (0, 0)
        self._begin()

    def _begin(self) -> None:
        self._pending: list[str] = [self._top]
        self._bytes, self._files = 0, 0
        self._links: set[int] = set()
        self._free = _free(self._top)

    @property
    def bytes(self) -> int:
        return max(self._whole[0], self._bytes)

    @property
    def files(self) -> int:
        return max(self._whole[1], self._files)

    def is_filling(self) -> bool:
        """Whether so much of the file system was used up, by whomever, that it is worth looking harder."""
        before, now = self._free, _free(self._top)
        return before[0] - now[0] > _FILLING_BYTES or before[1] - now[1] > _FILLING_FILES

    def step(self, max_entries: int) -> None:
        """Looks at about `max_entries` more entries; a walk that is through begins anew."""
        looked = 0
        while self._pending and looked < max_entries:
            looked += self._look(self._pending.pop())
        if not self._pending:
            self._whole = (self._bytes, self._files)
            self._begin()

    def _look(self, folder: str) -> int:
        looked = 1
        for entry, info in _entries(folder):
            looked += 1
            if stat.S_ISDIR(info.st_mode):
                self._pending.append(entry)
            elif info.st_nlink > 1:
                if info.st_ino in self._links:
                    continue
                self._links.add(info.st_ino)
            self._bytes += _size(info)
            self._files += 1
        return looked


def shrink(top: Path, max_bytes: int, max_files: int) -> None:
    """Removes the largest files below `top`, then the fullest folders' files, until the rest is within bounds. Nothing may run there."""
    big: list[tuple[int, str]] = []
    folders: list[tuple[int, int, str]] = []
    pending, total, count = [str(top)], 0, 0
    while pending:
        folder, own_bytes, own_files = pending.pop(), 0, 0
        for entry, info in _entries(folder):
            total, count = total + _size(info), count + 1
            if stat.S_ISDIR(info.st_mode):
                pending.append(entry)
            elif info.st_blocks * 512 >= _BIG_FILE_BYTES:
                big.append((_size(info), entry))
            else:
                own_bytes, own_files = own_bytes + _size(info), own_files + 1
        folders.append((own_files, own_bytes, folder))
    for size, path in sorted(big, reverse=True):
        if total <= max_bytes:
            break
        os.unlink(path)
        total, count = total - size, count - 1
    for own_files, own_bytes, folder in sorted(folders, reverse=True):
        if total <= max_bytes and count <= max_files:
            break
        for entry, info in _entries(folder):
            if not stat.S_ISDIR(info.st_mode):
                os.unlink(entry)
        total, count = total - own_bytes, count - own_files


def _entries(folder: str) -> list[tuple[str, os.stat_result]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
                except OSError:
                    continue
    except OSError:
        pass  # gone, or closed to us
    return found


def _size(info: os.stat_result) -> int:
    return _INODE_BYTES + info.st_blocks * 512


def _free(path: str) -> tuple[int, int]:
    try:
        told = os.statvfs(path)
    except OSError:
        return (0, 0)
    return (told.f_bfree * told.f_frsize, told.f_ffree)
