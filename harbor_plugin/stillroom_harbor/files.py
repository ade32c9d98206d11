"""Copies between the host and a sandbox's directory that never follow a link planted by a sandboxed command."""

import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from stillroom_harbor.download import Budget, copy_out, copy_tree

OUTPUT_MAX_BYTES = 4 << 20  # of a command's stdout and of its stderr, from the start; the rest is dropped

Rewrite = Callable[[bytes], bytes]


class SandboxFiles:
    """The sandbox's file system as the host sees it: a directory that stands for `/`.

    `read_only` names the top-level directories that are not backed by it (system mounts). Paths are opened one component at a
    time with O_NOFOLLOW, so a link to a host file is an error and not a way out.
    """

    def __init__(
        self,
        root: Path,
        read_only: Collection[str] = (),
        rewrite_script: Rewrite | None = None,
        owner: int | None = None,
        download_max_bytes: int | None = None,
    ):
        self._root, self._owner, self._download_max_bytes = root, owner, download_max_bytes
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
            budget = Budget(self._download_max_bytes)
            if not copy_out(fd, name, target, source, budget, make_parents=True):
                problem = "is too large (limits.download_mb)" if budget.refused else "is not a regular file"
                raise FileNotFoundError(f"{source} in the sandbox {problem}")
        finally:
            os.close(fd)

    def download_dir(self, source: str, target: Path) -> list[str]:
        """Copies regular files only: links, pipes and devices stay where they are. Returns what did not fit."""
        top = self._open_dir(self._parts(source))
        budget = Budget(self._download_max_bytes)
        try:
            copy_tree(top, target, "", budget)
        finally:
            os.close(top)
        return budget.refused

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

    def renew_dir(self, path: str) -> None:
        """Puts an empty directory in place of whatever is at `path`. Nothing may run in the sandbox that could interfere."""
        *parents, name = self._parts(path)
        fd = self._open_dir(parents, create=True)
        try:
            kind = self._kind_at(name, fd)
            if kind == "dir":
                shutil.rmtree(name, ignore_errors=True, dir_fd=fd)
            elif kind is not None:
                os.unlink(name, dir_fd=fd)
            os.close(self._open_in(name, fd, create=True))
        finally:
            os.close(fd)

    def mend_dir(self, path: str) -> None:
        """Makes sure that there is a directory at `path` which its owner may use; a link there is left as it is."""
        *parents, name = self._parts(path)
        fd = self._open_dir(parents, create=True)
        try:
            if stat.S_ISLNK(mode := self._mode_at(name, fd)):
                return
            if not stat.S_ISDIR(mode):
                self.renew_dir(path)
                return
            inner = self._open_in(name, fd, create=False)
            try:
                os.fchmod(inner, stat.S_IMODE(os.fstat(inner).st_mode) | 0o700)
            finally:
                os.close(inner)
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
            found = self._kind_at(name, fd)
        finally:
            os.close(fd)
        return None if found == "other" else found

    def _kind_at(self, name: str, fd: int) -> str | None:
        mode = self._mode_at(name, fd)
        return "dir" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other" if mode else None

    def _mode_at(self, name: str, fd: int) -> int:
        try:
            return os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        except OSError:
            return 0

    def _parts(self, path: str | Path) -> list[str]:
        parts = os.path.normpath(os.path.join("/", str(path))).strip("/").split("/")
        if parts[0] in self._read_only or parts == [""]:
            raise ValueError(f"{path} cannot be written or read from outside the sandbox")
        return parts

    def _open_dir(self, parts: Iterable[str], create: bool = False) -> int:
        fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        for part in parts:
            try:
                inner = self._open_in(part, fd, create)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def _open_in(self, name: str, fd: int, create: bool) -> int:
        if create:
            try:
                os.mkdir(name, 0o755, dir_fd=fd)
                if self._owner is not None:
                    os.chown(name, self._owner, self._owner, dir_fd=fd, follow_symlinks=False)
            except FileExistsError:
                pass
        flags = os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            return os.open(name, os.O_RDONLY | flags, dir_fd=fd)
        except PermissionError:
            # A command took the permissions away; to us, its files are still open.
            found = os.open(name, os.O_PATH | flags, dir_fd=fd)
            try:
                os.chmod(f"/proc/self/fd/{found}", 0o755)
            finally:
                os.close(found)
            return os.open(name, os.O_RDONLY | flags, dir_fd=fd)

    def _put(self, source: str | Path, fd: int, name: str) -> None:
        if (kind := self._kind_at(name, fd)) == "dir":
            raise IsADirectoryError(f"{name} is a directory in the sandbox, and a file here: {source}")
        if kind is not None:
            os.unlink(name, dir_fd=fd)
        script = name.endswith((".sh", ".py"))
        mode = stat.S_IMODE(os.stat(source).st_mode) & 0o755 | (0o700 if name.endswith(".sh") else 0o600)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(source, "rb") as read, open(os.open(name, flags, mode, dir_fd=fd), "wb") as write:
            if self._owner is not None:
                os.fchown(write.fileno(), self._owner, self._owner)
            if script and self._rewrite_script is not None:
                write.write(self._rewrite_script(read.read()))
            else:
                shutil.copyfileobj(read, write)


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
