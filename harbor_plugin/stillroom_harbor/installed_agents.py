"""What harbor's agents that are programs inside the sandbox (qwen-coder, mini-swe-agent, ...) need in a process sandbox.

- The program. harbor installs it over the network, as root. A process sandbox has neither: the program is there already, in a folder
  that `environment.kwargs.read_only_binds` shows and the agent's `env.PATH` names.
- The way to the model: open while the agent runs, and not before or after.
"""

from contextlib import nullcontext
from typing import Any

from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from stillroom_harbor.gateway_relay import gateway_of_trial

_NOT_FOUND = 127


def prepare(agent: Any) -> None:
    """Changes one harbor `BaseInstalledAgent`. In environments of other kinds (Docker, remote) it does as it always did."""
    install, run = agent.install, agent.run

    async def install_or_find(environment: BaseEnvironment) -> None:
        if getattr(environment, "installs_agents", True):
            await install(environment)
        else:
            await _find(agent, environment)

    async def run_with_gateway(instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        gateway = gateway_of_trial()
        open_door = getattr(environment, "door_to", None)
        async with nullcontext() if gateway is None or open_door is None else open_door(*gateway):
            await run(instruction=instruction, environment=environment, context=context)

    agent.install, agent.run = install_or_find, run_with_gateway


async def _find(agent: Any, environment: BaseEnvironment) -> None:
    """Asks the program for its version, as harbor does after an installation. Raises RuntimeError if it is not there."""
    command = agent.get_version_command()
    if command is None:
        return
    result = await environment.exec(command)
    if result.return_code == _NOT_FOUND:
        raise RuntimeError(
            f"agent {agent.name()} is not in the sandbox, and nothing is installed in process sandboxes: put it into a folder, name that "
            "folder in environment.kwargs.read_only_binds of the job template and its programs in env.PATH of the agent "
            f"(`{command}` said: {(result.stderr or '').strip()[-300:]})"
        )
