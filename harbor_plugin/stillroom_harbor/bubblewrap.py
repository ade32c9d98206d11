"""One bubblewrap sandbox: a directory that is `/` inside, system files read-only, no network unless asked for."""

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from harbor.environments.base import ExecResult

from stillroom_harbor.bwrap_options import SANDBOX_ENV, bwrap_arguments, bwrap_path, etc_dir
from stillroom_harbor.files import OUTPUT_MAX_BYTES, read_head

_START_TIMEOUT_SEC = 20.0
_MAILBOX = "run/stillroom"


@cache
def _exec_server() -> str:
    lines = resources.files(__package__).joinpath("exec_server.sh").read_text().splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


class _Link(asyncio.Protocol):
    """The host's end of the socket to the exec server."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[int]] = {}
        self._buffer = b""
        self._closed = False

    def expect(self, key: str) -> asyncio.Future[int]:
        future = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.set_exception(RuntimeError("the sandbox is gone"))
        return future

    def data_received(self, data: bytes) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            key, _, code = line.decode(errors="replace").partition(" ")
            future = self._waiting.pop(key, None)
            if future is not None and not future.done():
                future.set_result(int(code) if code.isdigit() else 255)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(RuntimeError("the sandbox is gone"))


class BubblewrapSession:
    """A running sandbox. `top` is its private host directory, `root` the directory that is `/` inside."""

    def __init__(self, top: Path, root: Path, runner_dir: Path, network: bool, ulimits: str, read_only_binds: list[str]):
        self._top, self._root, self._runner_dir = top, root, runner_dir
        self._network, self._ulimits, self._binds = network, ulimits, read_only_binds
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._link = _Link()
        self._init_pid: int | None = None
        self._mailbox_fd = -1
        self._count = 0

    @property
    def private_network_pid(self) -> int | None:
        """A process in the sandbox's own network; None while it has none: not started, or it shares the host's."""
        return None if self._network else self._init_pid

    async def start(self) -> None:
        """Raises RuntimeError with bubblewrap's own words if the machine refuses the sandbox."""
        for name in ("usr", "etc", "proc", "dev", "run", _MAILBOX):
            os.mkdir(f"{self._root}/{name}")
        self._mailbox_fd = os.open(f"{self._root}/{_MAILBOX}", os.O_RDONLY | os.O_DIRECTORY)
        info_read, info_write = os.pipe()
        host_end, sandbox_end = socket.socketpair()
        with open(info_read) as info, host_end:
            try:
                self._spawn(sandbox_end.fileno(), info_write)
            finally:
                sandbox_end.close()
                os.close(info_write)
            host_end.setblocking(False)
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.create_connection(lambda: self._link, sock=socket.socket(fileno=host_end.detach()))
            try:
                async with asyncio.timeout(_START_TIMEOUT_SEC):
                    await self._link.expect("ready")
            except (RuntimeError, TimeoutError):
                reason = (self._top / "bwrap.log").read_text(errors="replace").strip()[-500:]
                raise RuntimeError(f"the sandbox did not start: {reason or 'no answer'}") from None
            self._init_pid = json.load(info)["child-pid"]

    def _spawn(self, link_fd: int, info_fd: int) -> None:
        etc = etc_dir(self._runner_dir, self._network)
        args = bwrap_arguments(self._root, etc, self._network, self._binds, info_fd)
        # Arguments go through a file in memory: the sandbox can read its own command line, which must not name host paths.
        args_fd = os.memfd_create("arguments")
        os.write(args_fd, b"".join(arg.encode() + b"\0" for arg in args))
        os.lseek(args_fd, 0, os.SEEK_SET)
        move = "" if link_fd == 3 else f"exec 3<&{link_fd} {link_fd}>&-; "
        command = ["bash", "-c", move + self._ulimits + _exec_server(), "exec-server", f"/{_MAILBOX}"]
        try:
            with open(self._top / "bwrap.log", "wb") as log:
                # From the main thread: the kernel's parent-death signal follows the thread that forked.
                self._process = subprocess.Popen(
                    ["bwrap", "--args", str(args_fd), "--", *command],
                    executable=bwrap_path(),
                    pass_fds=[link_fd, info_fd, args_fd],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=SANDBOX_ENV,
                    cwd="/",
                )
        finally:
            os.close(args_fd)

    async def exec(self, command: str, cwd: str, env: Mapping[str, str], timeout_sec: float | None) -> ExecResult:
        """Runs one command to its end. After `timeout_sec` its whole process group is killed and RuntimeError raised."""
        if self._transport is None:
            raise RuntimeError("the sandbox is not started")
        self._count += 1
        key = str(self._count)
        strings = (cwd, command, *(f"{name}={value}" for name, value in env.items()))
        self._write_request(f"{key}.req", b"".join(s.encode(errors="surrogateescape") + b"\0" for s in strings))
        done = self._link.expect(key)
        self._transport.write(f"x {key}\n".encode())
        try:
            async with asyncio.timeout(timeout_sec):
                code = await done
        except (TimeoutError, asyncio.CancelledError) as error:
            self._transport.write(f"k {key}\n".encode())
            if isinstance(error, asyncio.CancelledError):
                raise
            async with asyncio.timeout(10):
                await self._link.expect(key)
            # Not a TimeoutError: harbor would take that for the agent's own time limit.
            raise RuntimeError(f"command timed out after {timeout_sec} seconds") from None
        finally:
            out, err = (read_head(f"{key}.{end}", self._mailbox_fd, OUTPUT_MAX_BYTES) for end in ("out", "err"))
            self._clear(key)
        return ExecResult(stdout=out, stderr=err, return_code=code)

    def _write_request(self, name: str, data: bytes) -> None:
        # Through the directory's descriptor: a command may have replaced the path by a link to a host directory.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(name, flags, 0o600, dir_fd=self._mailbox_fd), "wb") as file:
            file.write(data)

    def _clear(self, key: str) -> None:
        for end in ("req", "out", "err"):
            try:
                os.unlink(f"{key}.{end}", dir_fd=self._mailbox_fd)
            except OSError:
                continue

    async def stop(self) -> None:
        """Ends everything in the sandbox; returns when it is gone."""
        process, self._process = self._process, None
        if self._transport is not None:
            self._transport.abort()
        if process is not None and process.poll() is None:
            try:
                # The namespace's init, if there is one: the kernel ends everything with it.
                os.kill(self._init_pid or process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            await _wait(process)
        if self._mailbox_fd >= 0:
            os.close(self._mailbox_fd)
            self._mailbox_fd = -1


async def _wait(process: subprocess.Popen[bytes]) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    pidfd = os.pidfd_open(process.pid)
    loop.add_reader(pidfd, lambda: ended.done() or ended.set_result(None))
    try:
        async with asyncio.timeout(10):
            await ended
    except TimeoutError:
        process.kill()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
    process.wait()
