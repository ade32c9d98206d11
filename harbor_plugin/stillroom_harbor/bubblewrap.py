"""A bubblewrap sandbox: a directory that is `/` inside, system files read-only, no network unless asked for.

The sandbox is its directory; its processes can all end, by a command's doing or for a limit, and start again on it, like a machine that
is switched off and on.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from harbor.environments.base import ExecResult

from stillroom_harbor.bwrap_life import Life, SandboxGone
from stillroom_harbor.bwrap_options import bwrap_arguments, bwrap_path, etc_dir
from stillroom_harbor.bwrap_start import Start
from stillroom_harbor.cgroup import Group
from stillroom_harbor.runner_dir import remove_tree
from stillroom_harbor.sandbox_root import empty_dir, give, prepare
from stillroom_harbor.sandbox_user import reachable, reachable_program

_KILLED = 137
_OWN_DOING = "every process of the sandbox was ended by a command in it"


class BubblewrapSession:
    """`top` is the sandbox's private host directory, `root` the directory that is `/` inside, `uid` the user it starts as if not ours,
    `group` its control group, which it removes. `out_of_memory` tells, once, that the kernel ended processes for their memory, and why."""

    def __init__(
        self,
        top: Path,
        root: Path,
        runner_dir: Path,
        network: bool,
        ulimits: str,
        read_only_binds: list[str],
        uid: int | None = None,
        group: Group | None = None,
    ):
        self._top, self._root, self._runner_dir = top, root, runner_dir
        self._network, self._ulimits, self._binds, self._uid = network, ulimits, read_only_binds, uid
        self._group = group
        self.out_of_memory: Callable[[], str | None] = lambda: None
        self._life: Life | None = None
        self._lives = 0
        self._ended_for: str | None = None
        self._stopped = False

    def roots(self) -> list[int]:
        """The sandbox's first process, of which all others descend."""
        pid = self._life.init_pid if self._life else None
        return [] if pid is None else [pid]

    @property
    def private_network_pid(self) -> int | None:
        """A process in the sandbox's own network; None while it has none: not started, or it shares the host's."""
        return None if self._network or self._life is None else self._life.init_pid

    async def start(self) -> None:
        """Raises RuntimeError with bubblewrap's own words if the machine refuses the sandbox."""
        if self._stopped:
            raise RuntimeError("the sandbox is stopped")
        self._lives += 1
        own = self._top / f"life-{self._lives}"
        own.mkdir()
        for name in ("mailbox", "run", "shm"):
            empty_dir(own / name, self._uid)
        prepare(self._root, self._binds, self._uid)
        for path in (own, self._root, self._top):
            give(path, self._uid)
        self._ended_for = None
        self._life = life = Life(own)
        await life.start(self._how(own))

    def _how(self, own: Path) -> Start:
        home = self._runner_dir
        etc, program = Path(etc_dir(home, self._network)), bwrap_path()
        root = self._root
        if self._uid is not None:
            root, own, etc = (reachable(path, home) for path in (root, own, etc))
            program = reachable_program(Path(program), home)
        return Start(program, bwrap_arguments(root, own, str(etc), self._network, self._binds), self._uid, self._ulimits, self._group)

    async def exec(self, command: str, cwd: str, env: Mapping[str, str], timeout_sec: float | None) -> ExecResult:
        """Runs one command to its end. After `timeout_sec` its whole process group is killed and RuntimeError raised.

        A command whose sandbox ended under it failed with exit code 137, and its stderr says why: it is not the machine's fault.
        """
        if self._life is None:
            raise RuntimeError("the sandbox is not started")
        if self._life.is_over:
            await self.end()
            await self.start()
        life = self._life
        try:
            result = await life.exec(command, cwd, env, timeout_sec)
        except SandboxGone as gone:
            if self._stopped:
                raise RuntimeError("the sandbox is stopped") from None
            reason = self.out_of_memory() or self._ended_for or _OWN_DOING
            return _ended(gone.stdout, gone.stderr, reason)
        reason = self.out_of_memory()
        return result if reason is None else _ended(result.stdout, result.stderr, reason)

    def kill(self, reason: str) -> None:
        """Ends every process in the sandbox now, from any thread; the next command finds it started again."""
        if self._life is not None:
            self._ended_for = self._ended_for or reason
            self._life.kill()

    async def end(self) -> None:
        """Ends every process in the sandbox, and what it had in /run, /dev/shm and memory; returns when all is gone."""
        if self._life is not None:
            await self._life.end()
            remove_tree(self._top / f"life-{self._lives}")

    async def stop(self) -> None:
        """Ends everything in the sandbox for good; returns when it is gone."""
        self._stopped = True
        await self.end()
        if self._group is not None:
            await asyncio.to_thread(self._group.remove)


def _ended(stdout: str | None, stderr: str | None, reason: str) -> ExecResult:
    return ExecResult(stdout=stdout, stderr=f"{stderr or ''}\n{reason}\n", return_code=_KILLED)
