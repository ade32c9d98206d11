"""harbor environment without containers: a process sandbox per trial.

Named in a job template as `stillroom_harbor.environment:ProcessEnvironment` (`environment.import_path`), together with
`stillroom_harbor.environment:HostVerifier` (`verifier.import_path`). `environment.kwargs`:

- `mode`: "bwrap" (default) isolates with bubblewrap, without root; "plain" does not isolate at all.
- `network`: false by default, whatever the task says; true gives bwrap sandboxes the host's network (and with it the host's
  local services), unless the task forbids it.
- `limits`: see limits.py; `{"disk_mb": 8192, "nproc": null}` raises one and turns off another.
- `keep_agent_processes`: false by default: what the agent left running is ended before a shared verifier's tests are uploaded, or it
  could write the reward itself. true for tasks whose tests talk to a server that the agent was asked to start.
- `cgroups`: true by default: a control group bounds the sandbox's memory and processes where one can be had; false leaves it to sampling.
- `sandbox_root`: where sandboxes live; default see runner_dir.default_root.
- `read_only_binds`: host paths that bwrap sandboxes may read, e.g. a toolchain outside /usr.
"""

import asyncio
import os
import re
import tempfile
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.environments.definition import effective_exec_cwd

from stillroom_harbor.bubblewrap import BubblewrapSession
from stillroom_harbor.bwrap_options import SYSTEM_DIRS
from stillroom_harbor.cgroup import Group, new_group
from stillroom_harbor.disk_use import is_ram_disk
from stillroom_harbor.files import SandboxFiles
from stillroom_harbor.gateway_relay import relay
from stillroom_harbor.guard import Guard
from stillroom_harbor.limits import Limits, parse_limits
from stillroom_harbor.memory import Watch, watch
from stillroom_harbor.plain import PlainSession
from stillroom_harbor.protection import nproc_counts_per_sandbox, sandbox_uid
from stillroom_harbor.runner_dir import remove_tree, runner_dir
from stillroom_harbor.sandbox_root import give
from stillroom_harbor.verifier import HostVerifier

__all__ = ["HostVerifier", "ProcessEnvironment"]

# Parents first.
_DIRS = "app tests solution tmp root home var var/tmp logs logs/agent logs/verifier logs/artifacts".split()
_BUILD_FILES = ("Dockerfile", "docker-compose.yaml")
_DEFAULT_WORKDIR = "/app"


@lru_cache(maxsize=4096)
def _dockerfile_workdir(dockerfile: Path, _modified_ns: int) -> str:
    found = re.findall(r"(?mi)^WORKDIR\s+(\S+)", dockerfile.read_text())
    return found[-1] if found else _DEFAULT_WORKDIR


class ProcessEnvironment(BaseEnvironment):
    """One sandbox. Loose files of the task's `environment/` are copied into its work directory; a Dockerfile is not run."""

    def __init__(
        self,
        *args: Any,
        mode: str = "bwrap",
        network: bool = False,
        limits: dict[str, int | None] | None = None,
        keep_agent_processes: bool = False,
        cgroups: bool = True,
        sandbox_root: str | None = None,
        read_only_binds: list[str] | None = None,
        **kwargs: Any,
    ):
        self._mode, self._network, self._asked_limits = mode, network, dict(limits or {})
        self._keep_agent_processes, self._cgroups = keep_agent_processes, cgroups
        self._sandbox_root, self._read_only_binds = sandbox_root, list(read_only_binds or [])
        self._top: Path | None = None
        self._session: BubblewrapSession | PlainSession | None = None
        self._files: SandboxFiles | None = None
        self._guard: Guard | None = None
        self._watch: Watch | None = None
        self._ran_commands = False
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "process"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        # Plain mode accepts tasks that forbid the network: who asks for it by name has been told that nothing is enforced.
        return EnvironmentCapabilities(disable_internet=True, mounted=False)

    #: Nothing of the system can be written here, and there is no network: an agent's program is shown by `read_only_binds`.
    installs_agents = False

    def door_to(self, host: str, port: int) -> AbstractAsyncContextManager[None]:
        """While it is open, what runs in the sandbox reaches `host`:`port` as 127.0.0.1:`port`, and nothing else outside."""
        init_pid = self._session.private_network_pid if isinstance(self._session, BubblewrapSession) else None
        return nullcontext() if init_pid is None else relay(init_pid, host, port)

    def _validate_definition(self) -> None:
        """Nothing here: an error in the constructor would abort sibling trials, so `start` refuses instead."""

    def _refuse_bad_options(self) -> None:
        if self._mode not in ("bwrap", "plain"):
            raise ValueError(f'environment.kwargs.mode must be "bwrap" or "plain", not {self._mode!r}')
        switches = {"network": self._network, "keep_agent_processes": self._keep_agent_processes, "cgroups": self._cgroups}
        for name, value in switches.items():
            if not isinstance(value, bool):
                raise ValueError(f"environment.kwargs.{name} must be true or false, not {value!r}")
        if self._host_mounts:
            raise ValueError("environment.mounts: process sandboxes have no mounts; use environment.kwargs.read_only_binds")

    async def start(self, force_build: bool) -> None:
        self._refuse_bad_options()
        limits = self._limits()
        home = runner_dir(self._sandbox_root)
        self._top = Path(tempfile.mkdtemp(prefix="sandbox-", dir=home)).resolve()
        root = self._top / "fs"
        uid = sandbox_uid(home) if self._mode == "bwrap" else None
        root.mkdir()
        for name in _DIRS:
            os.mkdir(f"{root}/{name}")
            give(root / name, uid)
        download_mb = limits["download_mb"]
        copies = {"owner": uid, "download_max_bytes": None if download_mb is None else download_mb << 20}
        if self._mode == "plain":
            session = PlainSession(self._top, root, limits.ulimit_script())
            self._files = SandboxFiles(root, rewrite_script=session.rewrite_script, **copies)
            group = None
        else:
            network = self._network and self._network_is_public
            group = self._new_group(home, limits)
            session = BubblewrapSession(self._top, root, home, network, limits.ulimit_script(), self._read_only_binds, uid, group)
            self._files = SandboxFiles(root, read_only=SYSTEM_DIRS, **copies)
        self._session = session
        self._copy_environment_dir()
        self._guard = Guard(limits, root, is_ram_disk(self._top), session.kill, group)
        if isinstance(session, BubblewrapSession):
            session.out_of_memory = self._guard.out_of_memory
        await session.start()
        self._watch = watch(self.trial_paths.trial_dir.name, self._top, session.roots, self._guard.look)

    def _new_group(self, home: Path, limits: Limits) -> Group | None:
        if not self._cgroups or self._top is None:
            return None
        # Files on a RAM disk count in the group of who wrote them: `disk_mb` of them is allowed. The sampler sees files and processes apart.
        parts = [limits["total_memory_mb"], limits["disk_mb"] if is_ram_disk(self._top) else 0]
        memory = None if None in parts else sum(part or 0 for part in parts) << 20
        return new_group(home, self._top.name, memory, limits["nproc"])

    def _limits(self) -> Limits:
        """A task that declares more memory or storage than is usual gets it."""
        limits = parse_limits(self._asked_limits).raised("total_memory_mb", self.task_env_config.memory_mb)
        limits = limits.raised("disk_mb", self.task_env_config.storage_mb)
        # Elsewhere the kernel counts all processes of the user, our own included.
        return limits if self._mode == "bwrap" and nproc_counts_per_sandbox() else limits.without("nproc")

    def _copy_environment_dir(self) -> None:
        if not self.environment_dir.is_dir():
            return
        # A separate verifier gets the task's tests/ as its environment: it is what an image would have baked in as /tests.
        target = self._workdir if self._enable_environment_dir_upload else "/tests"
        self._need_files().upload_dir(self.environment_dir, target, skip=_BUILD_FILES)

    @cached_property
    def _workdir(self) -> str:
        dockerfile = self.environment_dir / "Dockerfile"
        try:
            image = _dockerfile_workdir(dockerfile, dockerfile.stat().st_mtime_ns)
        except FileNotFoundError:
            image = _DEFAULT_WORKDIR
        return effective_exec_cwd(None, self.task_env_config.workdir, image) or _DEFAULT_WORKDIR

    async def stop(self, delete: bool) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._session is not None:
            await self._session.stop()
        if delete and self._top is not None:
            # In a thread: it may hold very many files, and other trials are waiting.
            await asyncio.to_thread(remove_tree, self._top)

    async def begin_verification(self) -> None:
        """Ends what the agent left running, and removes what it planted where the tests and their results go.

        Not part of harbor's interface: our verifier calls it; with another one, uploading the tests does.
        """
        session, files = self._need_session(), self._need_files()
        if not self._keep_agent_processes and self._ran_commands:
            await session.end()
        self._ran_commands = False
        for path in ("/logs", "/logs/agent", "/logs/artifacts", "/tmp", "/root", self._workdir):
            files.mend_dir(path)
        for path in ("/tests", "/logs/verifier"):
            await asyncio.to_thread(files.renew_dir, path)

    @property
    def limits_reached(self) -> list[str]:
        """Why the sandbox's processes were ended so far, in words."""
        return [] if self._guard is None else self._guard.reasons

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Runs one command. Every user is the same one: "root" without any privilege in bwrap mode, you in plain mode."""
        session = self._need_session()
        if self._guard is not None:
            self._guard.out_of_memory()  # what ran since the last command
            if self._guard.must_make_room:
                await session.end()
                await asyncio.to_thread(self._guard.make_room)
        self._ran_commands = True
        merged = self._startup_env() | (self._merge_env(env) or {})
        result = await session.exec(command, cwd or self._workdir, merged, timeout_sec)
        if result.return_code == 137 and self.limits_reached:
            self.logger.warning("a command failed with exit code 137: %s", (result.stderr or "").strip()[-500:])
        return result

    def _need_session(self) -> BubblewrapSession | PlainSession:
        if self._session is None:
            raise RuntimeError("the environment is not started")
        return self._session

    def _need_files(self) -> SandboxFiles:
        if self._files is None:
            raise RuntimeError("the environment is not started")
        return self._files

    async def ensure_dirs(self, dirs: Any, *, chmod: bool = True) -> Any:
        self._need_files().make_dirs(str(path) for path in dirs)

    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        return self._need_files().kind(path) == "dir"

    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        return self._need_files().kind(path) == "file"

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._need_files().upload_file(Path(source_path), target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        if target_dir == "/tests" and self._ran_commands:
            await self.begin_verification()
        self._need_files().upload_dir(Path(source_dir), target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        self._need_files().download_file(source_path, Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        if refused := await asyncio.to_thread(self._need_files().download_dir, source_dir, Path(target_dir)):
            self.logger.warning("left in the sandbox, over limits.download_mb or too many: %s", ", ".join(refused))

    async def remove_file(self, path: str) -> None:
        """Not part of harbor's interface: the verifier uses it instead of running `rm`."""
        self._need_files().remove_file(path)
