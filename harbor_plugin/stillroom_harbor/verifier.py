"""A verifier that does on the host side what harbor's default one runs commands for: one command per verification, not three."""

from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.trial.paths import EnvironmentPaths
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.verifier import RewardFileNotFoundError, Verifier


class _ScriptsAreExecutable:
    """The environment, minus the `chmod +x` that harbor runs before a test script: our uploads set the bit already."""

    def __init__(self, environment: BaseEnvironment):
        self._environment = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    async def exec(self, command: str, **options: Any) -> ExecResult:
        if command.startswith("chmod +x /tests/"):
            return ExecResult(stdout="", stderr="", return_code=0)
        return await self._environment.exec(command, **options)


class HostVerifier(Verifier):
    """For `ProcessEnvironment` only; with any other environment it refuses, because it relies on its uploads."""

    async def verify(self) -> VerifierResult:
        environment = self.environment
        if not hasattr(environment, "remove_file"):
            raise TypeError("verifier.import_path HostVerifier needs environment.import_path ProcessEnvironment")
        # A separate verifier's tests are in its environment already, and no agent was.
        if not self._skip_tests_upload and self._is_last_step():
            await environment.begin_verification()
        reached = len(environment.limits_reached)
        self.environment = _ScriptsAreExecutable(environment)  # type: ignore[assignment]
        try:
            return await super().verify()
        except RewardFileNotFoundError as error:
            if reasons := environment.limits_reached[reached:]:
                raise RewardFileNotFoundError(f"{error}; while the tests ran, {reasons[-1]}") from error
            raise
        finally:
            self.environment = environment

    def _is_last_step(self) -> bool:
        """Between the steps of a task, the agent's terminal and what it started go on living."""
        steps = self.task.config.steps
        return not steps or self.step_name == steps[-1].name

    async def _remove_reward_files(self) -> None:
        paths = EnvironmentPaths.for_os(self.environment.os)
        for path in (paths.reward_text_path, paths.reward_json_path):
            await self.environment.remove_file(str(path))
        self.trial_paths.reward_text_path.unlink(missing_ok=True)
        self.trial_paths.reward_json_path.unlink(missing_ok=True)
