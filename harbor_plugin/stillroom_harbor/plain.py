"""Commands as plain child processes in a temporary directory: no isolation of any kind. Must be asked for by name.

Needs no bash newer than the 3.2 of macOS: each command is one child of this process, in a session of its own.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from harbor.environments.base import ExecResult

from stillroom_harbor.files import OUTPUT_MAX_BYTES, read_head
from stillroom_harbor.runner_dir import MARKER, kill_marked

WARNING = (
    "PLAIN MODE: commands written by the model run as you, without isolation. They can read and delete your files, use your "
    "network and reach your local services, this product's included; a task's no-network rule is not enforced. Use it only "
    "with tasks and models you trust, or in a throw-away virtual machine."
)
_REWRITTEN = re.compile(r"(?<![\w./}-])/(app|tests|logs|solution)(?![\w.-])")

# $1 is the command. The background part waits for the runner's end of the pipe (fd 9) to close, which happens when the sandbox
# is stopped and when the runner dies, and then ends the command's whole process group, itself included.
_WRAPPER = (
    "( trap '' TERM HUP INT; read -r -u 9; kill -KILL 0 ) < /dev/null > /dev/null 2>&1 & "
    'exec bash -c "$1" 9<&-'
)

_warned = False


def warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        print(WARNING, file=sys.stderr, flush=True)


class PlainSession:
    """`top` is the sandbox's private directory, `root` the directory that stands for `/` in rewritten paths."""

    def __init__(self, top: Path, root: Path, ulimits: str):
        self._top, self._root, self._ulimits = top, root, ulimits
        self._outputs = top / "outputs"
        self._outputs_fd = -1
        self._lifeline: tuple[int, int] | None = None
        self._running: set[asyncio.subprocess.Process] = set()
        self._count = 0

    async def start(self) -> None:
        warn_once()
        self._outputs.mkdir()
        self._outputs_fd = os.open(self._outputs, os.O_RDONLY | os.O_DIRECTORY)
        self._lifeline = os.pipe()

    def rewrite(self, text: str) -> str:
        """Points /app, /tests, /logs and /solution into the directory. Textual: paths that a command builds are not seen."""
        return _REWRITTEN.sub(lambda match: f"{self._root}/{match[1]}", text)

    def rewrite_script(self, script: bytes) -> bytes:
        return self.rewrite(script.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def _env(self, env: Mapping[str, str]) -> dict[str, str]:
        root = self._root
        own = {"LANG": "C.UTF-8", "TERM": "xterm", "HOME": f"{root}/root", "TMPDIR": f"{root}/tmp", MARKER: str(self._top)}
        # Without it, the tmux servers of all sandboxes and of the user would be one. Not deeper: a socket's path has 103 bytes at most.
        own |= {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TMUX_TMPDIR": str(self._top)}
        return own | {"APP_DIR": f"{root}/app", "TESTS_DIR": f"{root}/tests", "LOGS_DIR": f"{root}/logs"} | dict(env)

    async def exec(self, command: str, cwd: str, env: Mapping[str, str], timeout_sec: float | None) -> ExecResult:
        """Runs one command to its end. After `timeout_sec` its whole process group is killed and RuntimeError raised."""
        if self._lifeline is None:
            raise RuntimeError("the environment is not started")
        self._count += 1
        key, lifeline = str(self._count), self._lifeline[0]
        script = f"{self._ulimits}exec 9<&{lifeline} {lifeline}<&-; {_WRAPPER}" if lifeline != 9 else self._ulimits + _WRAPPER
        with open(self._outputs / f"{key}.out", "wb") as out, open(self._outputs / f"{key}.err", "wb") as err:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", script, "command", self.rewrite(command)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._env(env),
                cwd=self.rewrite(cwd),
                start_new_session=True,
                pass_fds=[lifeline],
            )
        self._running.add(process)
        try:
            async with asyncio.timeout(timeout_sec):
                code = await process.wait()
        except (TimeoutError, asyncio.CancelledError) as error:
            _kill_group(process.pid)
            await process.wait()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise RuntimeError(f"command timed out after {timeout_sec} seconds") from None
        finally:
            self._running.discard(process)
        stdout, stderr = (read_head(f"{key}.{end}", self._outputs_fd, OUTPUT_MAX_BYTES) for end in ("out", "err"))
        for end in ("out", "err"):
            (self._outputs / f"{key}.{end}").unlink(missing_ok=True)
        return ExecResult(stdout=stdout, stderr=stderr, return_code=code if code >= 0 else 128 - code)

    def roots(self) -> list[int]:
        """The commands that run: of what they leave behind, nothing is known."""
        return [process.pid for process in list(self._running)]

    def kill(self, reason: str) -> None:
        """Ends what runs in the sandbox now, from any thread."""
        for pid in self.roots():
            _kill_group(pid)
        kill_marked(self._top)

    async def end(self) -> None:
        """Ends everything that commands left running."""
        self._cut_lifeline()
        self._lifeline = os.pipe()

    async def stop(self) -> None:
        self._cut_lifeline()
        if self._outputs_fd >= 0:
            os.close(self._outputs_fd)
            self._outputs_fd = -1

    def _cut_lifeline(self) -> None:
        if self._lifeline is not None:
            for fd in self._lifeline:
                os.close(fd)
            self._lifeline = None
            self.kill("stopped")


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
