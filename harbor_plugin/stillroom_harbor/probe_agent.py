"""Finds out, without a model, whether an agent could play here. `stillroom_harbor.probe_agent:ProbeAgent`"""

import asyncio
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.agents.factory import AgentFactory
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trial.config import AgentConfig

_CHECK_SEC = 30


class AgentCannotPlay(Exception):
    """No trial of this agent could begin; the message says what is missing and what to do."""


class ProbeAgent(BaseAgent):
    """Makes the agent of `agent` (an AgentConfig) as a trial would, looks for the programs `needs` in the sandbox, and does nothing else."""

    def __init__(self, logs_dir: Path, *, agent: dict[str, Any], needs: list[str] | None = None, **kwargs: Any):
        super().__init__(logs_dir=logs_dir, **kwargs)
        self._config, self._needs = agent, needs or []

    @staticmethod
    def name() -> str:
        return "stillroom-probe"

    def version(self) -> str | None:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        try:
            # In a thread: an agent's module may take seconds to import.
            agent = await asyncio.to_thread(AgentFactory.create_agent_from_config, AgentConfig(**self._config), logs_dir=self.logs_dir)
        except Exception as error:
            raise AgentCannotPlay(f"the agent cannot be made: {type(error).__name__}: {error}") from error
        await _look_for_program(agent, environment)
        for program in self._needs:
            found = await environment.exec(f"command -v {shlex.quote(program)}", timeout_sec=_CHECK_SEC)
            if found.return_code != 0:
                raise AgentCannotPlay(
                    f"{program} is not in the sandbox, and this agent works in it: process sandboxes show this machine's programs, "
                    f"so install the package {program} on every machine with a rollout worker"
                )

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Nothing: the sandbox goes to the grader as it is."""


async def _look_for_program(agent: Any, environment: BaseEnvironment) -> None:
    """Where nothing is installed, the program of one of harbor's installed agents must be in the sandbox already."""
    if getattr(environment, "installs_agents", True) or not hasattr(agent, "install"):
        return
    try:
        await agent.install(environment)
    except RuntimeError as error:
        raise AgentCannotPlay(str(error)) from error
