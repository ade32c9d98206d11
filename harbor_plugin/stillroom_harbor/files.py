"""Copies between the host and a sandbox's directory that never follow a link planted by a sandboxed command."""

import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

OUTPUT_MAX_BYTES = 4 << 20  # of a command's stdout and of its stderr, from the start; the rest is dropped

Rewrite = Callable[[bytes], bytes]


class SandboxFiles:
    """The sandbox's file system as the host sees it: a directory that stands for `/`.

    `read_only` names the top-level directories that are not backed by it (system mounts). Paths are opened one component at a
    time with O_NOFOLLOW, so a link to a host file is an error and not a way out.
    """

    def __init__(self, root: Path, read_only: Collection[str] = (), rewrite_script: Rewrite | None = None):
        self._root = root
        self._read_only = frozenset(read_only)
        self._rewrite_script = rewrite_script

    def make_dirs(self, paths: Iterable[str]) -> None:
        for path in paths:
            os.close(self._open_dir(self._parts(path), create=True))

    def upload_dir(self, source: Path, target: str, skip: Collection[str] = ()) -> None:
        """Copies a host directory's contents; `skip` names entries of its top level."""
        parts = self._parts(target)
        for here, _dirs, names in os.walk(source):
            below = Path(here).relative_to(source).parts
            fd = self._open_dir([*parts, *below], create=True)
            try:
                for name in names:
                    if below or name not in skip:
                        self._put(os.path.join(here, name), fd, name)
            finally:
                os.close(fd)

    def upload_file(self, source: Path, target: str) -> None:
        *parents, name = self._parts(target)
        fd = self._open_dir(parents, create=True)
        try:
            self._put(source, fd, name)
        finally:
            os.close(fd)

    def download_file(self, source: str, target: Path) -> None:
        *parents, name = self._parts(source)
        fd = self._open_dir(parents)
        try:
            if not _copy_out(fd, name, target, make_parents=True):
                raise FileNotFoundError(f"{source} in the sandbox is not a regular file")
        finally:
            os.close(fd)

    def download_dir(self, source: str, target: Path) -> None:
        """Copies regular files only: links, pipes and devices stay where they are."""
        top = self._open_dir(self._parts(source))
        try:
            for here, _dirs, names, fd in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                into = target / here
                into.mkdir(parents=True, exist_ok=True)
                for name in names:
                    _copy_out(fd, name, into / name)
        finally:
            os.close(top)

    def remove_file(self, path: str) -> None:
        """Unlinks a file if it is there."""
        *parents, name = self._parts(path)
        try:
            fd = self._open_dir(parents)
        except FileNotFoundError:
            return
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        finally:
            os.close(fd)

    def kind(self, path: str) -> str | None:
        """"dir" or "file" (links are not followed and count as neither), None if there is nothing."""
        *parents, name = self._parts(path)
        try:
            fd = self._open_dir(parents)
        except OSError:
            return None
        try:
            mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        except OSError:
            return None
        finally:
            os.close(fd)
        return "dir" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else None

    def _parts(self, path: str | Path) -> list[str]:
        parts = os.path.normpath(os.path.join("/", str(path))).strip("/").split("/")
        if parts[0] in self._read_only or parts == [""]:
            raise ValueError(f"{path} cannot be written or read from outside the sandbox")
        return parts

    def _open_dir(self, parts: Iterable[str], create: bool = False) -> int:
        fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        for part in parts:
            try:
                if create:
                    try:
                        os.mkdir(part, 0o755, dir_fd=fd)
                    except FileExistsError:
                        pass
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def _put(self, source: str | Path, fd: int, name: str) -> None:
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        script = name.endswith((".sh", ".py"))
        mode = stat.S_IMODE(os.stat(source).st_mode) & 0o755 | (0o700 if name.endswith(".sh") else 0o600)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(source, "rb") as read, open(os.open(name, flags, mode, dir_fd=fd), "wb") as write:
            if script and self._rewrite_script is not None:
                write.write(self._rewrite_script(read.read()))
            else:
                shutil.copyfileobj(read, write)


def _copy_out(fd: int, name: str, target: Path, make_parents: bool = False) -> bool:
    """Copies one entry to the host if it is a regular file."""
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
    except OSError:
        return False
    with open(source, "rb") as read:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return False
        if make_parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "wb") as write:
            shutil.copyfileobj(read, write)
    return True


def read_head(name: str, fd: int, limit: int) -> str:
    """The first `limit` bytes of a regular file in the directory `fd` as text; empty if there is none."""
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
    except OSError:
        return ""
    with open(source, "rb") as read:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return ""
        return read.read(limit).decode(errors="replace")
