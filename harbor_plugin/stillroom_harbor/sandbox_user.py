"""Who sandboxes run as. The kernel's process limits do not bind the real root, and root outside is root outside: so when the runner is
the real root, each sandbox gets a user of its own, whom nobody else is.

That user must reach what the sandbox is made of, which may lie below a folder that only root may enter. Such a folder stays closed:
the runner then gets a mount namespace of its own, where its directory has a second, reachable name. The kernel removes it with the runner.
"""

import ctypes
import os
import secrets
import shutil
import stat
from functools import cache
from pathlib import Path

# A range that Linux distributions leave unused; of 2^27 ids, two sandboxes will not draw the same.
_FIRST_UID = 0x7000_0000
_UIDS = 1 << 27
_ALIASES = Path("/run/stillroom")
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_SLAVE = 0x20000, 4096, 16384, 1 << 19


@cache
def is_real_root() -> bool:
    """Whether we are root outside of any user namespace."""
    try:
        return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    except (AttributeError, OSError):
        return False


def new_uid() -> int:
    return _FIRST_UID + secrets.randbelow(_UIDS)


def is_reachable(path: Path) -> bool:
    """Whether everybody may pass through every folder above `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.absolute().parents)


def reachable(path: Path, home: Path) -> Path:
    """A name of `path`, which lies in the runner's directory `home`, that every user can follow. Raises OSError if there is none."""
    os.chmod(home, 0o711)
    return path if is_reachable(home) else _alias(home) / path.relative_to(home)


@cache
def _alias(home: Path) -> Path:
    _own_mounts()
    name = _ALIASES / home.name
    name.mkdir(mode=0o755)
    _mount(str(home), str(name), "", _MS_BIND)
    return name


@cache
def _own_mounts() -> None:
    _ALIASES.mkdir(mode=0o755, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "the runner could not get a mount namespace of its own")
    _mount("none", "/", "", _MS_REC | _MS_SLAVE)
    _mount("stillroom", str(_ALIASES), "tmpfs", 0)
    os.chmod(_ALIASES, 0o755)


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {target}: {os.strerror(number)}")


@cache
def reachable_program(program: Path, home: Path) -> str:
    """A program that every user can start: itself, or a copy in `home`, with the libraries that a Python package ships beside it."""
    if is_reachable(program) and program.stat().st_mode & stat.S_IXOTH:
        return str(program)
    copied = home / "programs" / program.parent.parent.name / program.parent.name / program.name
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, copied)
    libraries = program.parent.parent.with_name(f"{program.parent.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copied.parent.parent.parent / libraries.name, dirs_exist_ok=True)
    for here, folders, files in os.walk(home / "programs"):
        for name in (".", *folders, *files):
            os.chmod(os.path.join(here, name), 0o755)
    return str(reachable(copied, home))
