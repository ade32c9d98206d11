"""One life of a bubblewrap sandbox: from the start of its processes until all of them are gone."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from harbor.environments.base import ExecResult

from stillroom_harbor.bwrap_start import Start
from stillroom_harbor.exec_link import ExecLink
from stillroom_harbor.exact_process import wait_for
from stillroom_harbor.files import OUTPUT_MAX_BYTES, read_head

_START_TIMEOUT_SEC = 20.0
_ANSWER_TIMEOUT_SEC = 5.0


class SandboxGone(Exception):
    """Every process of the sandbox ended while a command ran; what that had written until then."""

    def __init__(self, stdout: str, stderr: str):
        super().__init__("the sandbox is gone")
        self.stdout, self.stderr = stdout, stderr


class Life:
    """`own` is this life's directory on the host: its mailbox, which holds requests and outputs, and bubblewrap's log."""

    def __init__(self, own: Path):
        self._own = own
        self._link = ExecLink()
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._init: tuple[int, int] | None = None  # its pid, and a descriptor that means exactly this process
        self._init_lock = threading.Lock()
        self._killed = False
        self._mailbox_fd = os.open(own / "mailbox", os.O_RDONLY | os.O_DIRECTORY)
        self._count = 0

    @property
    def init_pid(self) -> int | None:
        return self._init[0] if self._init else None

    @property
    def is_over(self) -> bool:
        return self._killed or self._link.closed

    async def start(self, how: Start) -> None:
        """Raises RuntimeError with bubblewrap's own words if the machine refuses the sandbox."""
        info_read, info_write = os.pipe()
        host_end, sandbox_end = socket.socketpair()
        with open(info_read) as info, host_end:
            try:
                self._process = how.spawn(self._own / "bwrap.log", sandbox_end.fileno(), info_write)
            finally:
                sandbox_end.close()
                os.close(info_write)
            host_end.setblocking(False)
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.create_connection(lambda: self._link, sock=socket.socket(fileno=host_end.detach()))
            try:
                async with asyncio.timeout(_START_TIMEOUT_SEC):
                    await self._link.expect("ready")
                pid = json.load(info)["child-pid"]
                self._init = (pid, os.pidfd_open(pid))
            except (OSError, ValueError, TimeoutError):
                reason = (self._own / "bwrap.log").read_text(errors="replace").strip()[-500:]
                raise RuntimeError(f"the sandbox did not start: {reason or 'no answer'}") from None

    async def exec(self, command: str, cwd: str, env: Mapping[str, str], timeout_sec: float | None) -> ExecResult:
        """Runs one command to its end. After `timeout_sec` its whole process group is killed and RuntimeError raised."""
        assert self._transport is not None
        self._count += 1
        key = str(self._count)
        strings = (cwd, command, *(f"{name}={value}" for name, value in env.items()))
        self._write_request(f"{key}.req", b"".join(s.encode(errors="surrogateescape") + b"\0" for s in strings))
        done = self._link.expect(key)
        self._transport.write(f"x {key}\n".encode())
        try:
            code = await self._answer(key, done, timeout_sec)
            out, err = self._output(key)
        except ConnectionResetError:
            raise SandboxGone(*self._output(key)) from None
        finally:
            for end in ("req", "out", "err", "sh"):
                self._unlink(f"{key}.{end}")
        return ExecResult(stdout=out, stderr=err, return_code=code)

    async def _answer(self, key: str, done: asyncio.Future[int], timeout_sec: float | None) -> int:
        assert self._transport is not None
        try:
            async with asyncio.timeout(timeout_sec):
                return await done
        except (TimeoutError, asyncio.CancelledError) as error:
            self._transport.write(f"k {key}\n".encode())
            if isinstance(error, asyncio.CancelledError):
                raise
            try:
                async with asyncio.timeout(_ANSWER_TIMEOUT_SEC):
                    await self._link.expect(f"k{key}")
            except TimeoutError:
                self.kill()  # the exec server does not answer any more
            except ConnectionResetError:
                pass
            # Not a TimeoutError: harbor would take that for the agent's own time limit.
            raise RuntimeError(f"command timed out after {timeout_sec} seconds") from None

    def _write_request(self, name: str, data: bytes) -> None:
        # Through the directory's descriptor and never through a link: commands may write to this directory, too.
        self._unlink(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(name, flags, 0o644, dir_fd=self._mailbox_fd), "wb") as file:
            file.write(data)

    def _output(self, key: str) -> tuple[str, str]:
        out, err = (read_head(f"{key}.{end}", self._mailbox_fd, OUTPUT_MAX_BYTES) for end in ("out", "err"))
        return out, err

    def _unlink(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._mailbox_fd)
        except OSError:
            return

    def kill(self) -> None:
        """Ends every process of this life now: the kernel ends all with the first one. From any thread; does not wait."""
        self._killed = True
        with self._init_lock:
            if self._init is not None:
                try:
                    signal.pidfd_send_signal(self._init[1], signal.SIGKILL)
                except ProcessLookupError:
                    pass

    async def end(self) -> None:
        """Ends this life; returns when it is gone."""
        if self._transport is not None:
            self._transport.abort()
        self._link.closed = True
        if self._process is not None:
            if self._init is None:
                self._process.kill()
            self.kill()
            await wait_for(self._process)
        with self._init_lock:
            init, self._init = self._init, None
        if init is not None:
            os.close(init[1])
        if self._mailbox_fd >= 0:
            os.close(self._mailbox_fd)
            self._mailbox_fd = -1
