"""The directory that is `/` in a sandbox, made ready for a start: the names that system mounts will cover are plain directories.

A sandbox starts again on the same directory after its commands had it for themselves. Nothing of it may lead a mount elsewhere: what is
not what it should be is replaced. Nothing runs in the sandbox meanwhile.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from stillroom_harbor.runner_dir import remove_tree

_MOUNT_POINTS = ("usr", "etc", "proc", "dev", "run")
_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


def prepare(root: Path, read_only_binds: Iterable[str], owner: int | None) -> None:
    """Makes every mount point under `root` a real directory, and every system link ours."""
    root.chmod(0o755)
    for name in _MOUNT_POINTS:
        _real_dir(root / name, owner)
    for name in _SYSTEM_LINKS:
        host, ours = Path("/") / name, root / name
        if host.is_symlink():
            if not (ours.is_symlink() and os.readlink(ours) == os.readlink(host)):
                _remove(ours)
                os.symlink(os.readlink(host), ours)
        elif host.is_dir():
            _real_dir(ours, owner)
    for path in read_only_binds:
        here = root
        *above, last = Path(path).parts[1:]
        for part in above:
            here /= part
            _real_dir(here, owner)
        if (here / last).is_symlink():
            _remove(here / last)


def empty_dir(path: Path, owner: int | None) -> None:
    """A new empty directory in place of whatever is there."""
    _remove(path)
    _real_dir(path, owner)


def give(path: Path, owner: int | None) -> None:
    """Hands one entry of the host's to the sandbox's user."""
    if owner is not None:
        os.chown(path, owner, owner, follow_symlinks=False)


def _real_dir(path: Path, owner: int | None) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = 0
    if mode and not stat.S_ISDIR(mode):
        path.unlink()
        mode = 0
    if not mode:
        path.mkdir(mode=0o755)
        give(path, owner)
    elif mode & 0o700 != 0o700:
        path.chmod(mode | 0o700)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
