"""Environments by import path that are none of Stillroom's: what somebody else's code may do to a runner."""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities


class FolderEnvironment(BaseEnvironment):
    """A folder of this machine for each trial, its commands plain processes; sandbox paths are written anew in commands."""

    @staticmethod
    def type() -> str:
        return "folder"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        pass

    async def start(self, force_build: bool) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="folder-environment-"))
        for name in ("app", "tests", "tmp", "logs/agent", "logs/verifier", "logs/artifacts"):
            (self._root / name).mkdir(parents=True)
        shutil.copytree(self.environment_dir, self._root / "app", dirs_exist_ok=True)

    async def stop(self, delete: bool) -> None:
        if delete:
            shutil.rmtree(self._root, ignore_errors=True)

    def _host(self, path: str | Path) -> Path:
        return self._root / str(path).lstrip("/")

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._host(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, self._host(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._host(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy2(self._host(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._host(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command: str, cwd: str | None = None, env: dict[str, str] | None = None, **_: Any) -> ExecResult:
        for name in ("/app", "/tests", "/logs"):
            command = command.replace(name, f"{self._root}{name}")
        variables = {"PATH": "/usr/bin:/bin", "LOGS_DIR": f"{self._root}/logs", **(self._merge_env(env) or {})}
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command), cwd=self._host(cwd or "/app"), env=variables,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0)


class NeverStarts(FolderEnvironment):
    async def start(self, force_build: bool) -> None:
        await asyncio.sleep(3600)


class IgnoresBeingTold(FolderEnvironment):
    async def start(self, force_build: bool) -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue


class BlocksTheLoop(FolderEnvironment):
    async def start(self, force_build: bool) -> None:
        time.sleep(3600)


class BlocksTheLoopForGood(FolderEnvironment):
    async def start(self, force_build: bool) -> None:
        while True:
            try:
                time.sleep(3600)
            except RuntimeError:
                continue


class NotHere(FolderEnvironment):
    @classmethod
    def preflight(cls) -> None:
        raise SystemExit("the lab's engine is switched off. Switch it on and try again.")
