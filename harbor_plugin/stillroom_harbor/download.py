"""What is copied out of a sandbox: bounded in bytes, number and depth, since commands decide what lies there."""

import os
import stat
from pathlib import Path

_MAX_FILES = 10_000
_MAX_DEPTH = 32
_MAX_REFUSED = 20


class Budget:
    """How much one download may still copy."""

    def __init__(self, max_bytes: int | None):
        self._bytes, self._files = max_bytes, _MAX_FILES
        self.refused: list[str] = []

    def takes(self, name: str, size: int) -> bool:
        """Whether another file fits, which is then counted."""
        fits = self._files > 0 and (self._bytes is None or size <= self._bytes)
        if not fits:
            if len(self.refused) < _MAX_REFUSED:
                self.refused.append(name)
            return False
        self._files -= 1
        if self._bytes is not None:
            self._bytes -= size
        return True


def copy_tree(fd: int, target: Path, below: str, budget: Budget, depth: int = _MAX_DEPTH) -> None:
    """Copies what fits of an open directory's regular files; links, pipes and devices stay."""
    target.mkdir(parents=True, exist_ok=True)
    folders = []
    with os.scandir(fd) as entries:
        for count, entry in enumerate(entries):
            if count >= _MAX_FILES:
                budget.takes(f"{below}...", 1 << 62)
                break
            if not entry.is_dir(follow_symlinks=False):
                copy_out(fd, entry.name, target / entry.name, below + entry.name, budget)
            elif budget.takes(f"{below}{entry.name}/", 0):
                folders.append(entry.name)
    for name in folders if depth > 0 else ():
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError:
            continue
        try:
            copy_tree(inner, target / name, f"{below}{name}/", budget, depth - 1)
        finally:
            os.close(inner)


def copy_out(fd: int, name: str, target: Path, shown: str, budget: Budget, make_parents: bool = False) -> bool:
    """Copies one entry to the host if it is a regular file that fits."""
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
    except OSError:
        return False
    with open(source, "rb") as read:
        info = os.fstat(source)
        if not stat.S_ISREG(info.st_mode) or not budget.takes(shown, info.st_size):
            return False
        if make_parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        left = info.st_size  # and no more, should something still write to it
        with open(target, "wb") as write:
            while left > 0 and (piece := read.read(min(left, 1 << 20))):
                write.write(piece)
                left -= len(piece)
    return True
