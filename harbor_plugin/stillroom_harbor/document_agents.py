"""What harness documents ask for and harbor's agent factory does not do.

- Their prompt stands before each instruction that one of harbor's own agents gets. harbor's `prompt_template_path` would need a file
  beside every worker, and terminus-2 does not know it.
- A module of the user's own may be newer than this process: Python does not look again into a folder that it has seen.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.agents.factory import AgentFactory
from harbor.models.trial.config import AgentConfig

_PROMPT = "stillroom_prompt"


def apply() -> None:
    """Patches harbor 0.25.0 in this process."""
    create = AgentFactory.create_agent_from_config

    def create_as_documented(config: AgentConfig, logs_dir: Path, **kwargs: Any) -> BaseAgent:
        if config.import_path is not None and config.import_path.partition(":")[0] not in sys.modules:
            importlib.invalidate_caches()
        prompt = config.kwargs.get(_PROMPT)
        if prompt is None:
            return create(config, logs_dir=logs_dir, **kwargs)
        others = {name: value for name, value in config.kwargs.items() if name != _PROMPT}
        agent = create(config.model_copy(update={"kwargs": others}), logs_dir=logs_dir, **kwargs)
        _put_before(agent, str(prompt))
        return agent

    AgentFactory.create_agent_from_config = create_as_documented  # type: ignore[method-assign]


def _put_before(agent: Any, prompt: str) -> None:
    run = agent.run

    async def run_prompted(instruction: str, *args: Any, **kwargs: Any) -> None:
        await run(f"{prompt.rstrip()}\n\n{instruction}", *args, **kwargs)

    agent.run = run_prompted
