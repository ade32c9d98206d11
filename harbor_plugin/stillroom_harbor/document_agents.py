"""What harness documents ask for and harbor's agent factory does not do.

- Their prompt stands before each instruction that one of harbor's own agents gets. harbor's `prompt_template_path` would need a file
  beside every worker, and terminus-2 does not know it.
- A module of the user's own may be newer than this process: Python does not look again into a folder that it has seen.
"""

import importlib
import sys
from typing import Any

from harbor.models.trial.config import AgentConfig

_PROMPT = "stillroom_prompt"


def find_anew(config: AgentConfig) -> None:
    """Lets the module of an agent be found although its folder was looked at before it was there."""
    if config.import_path is not None and config.import_path.partition(":")[0] not in sys.modules:
        importlib.invalidate_caches()


def take_prompt(config: AgentConfig) -> tuple[AgentConfig, str | None]:
    """The config without the document's prompt, of which no agent knows, and the prompt."""
    prompt = config.kwargs.get(_PROMPT)
    if prompt is None:
        return config, None
    others = {name: value for name, value in config.kwargs.items() if name != _PROMPT}
    return config.model_copy(update={"kwargs": others}), str(prompt)


def put_before(agent: Any, prompt: str) -> None:
    """Changes one agent: each of its instructions begins with the prompt."""
    run = agent.run

    async def run_prompted(instruction: str, *args: Any, **kwargs: Any) -> None:
        await run(f"{prompt.rstrip()}\n\n{instruction}", *args, **kwargs)

    agent.run = run_prompted
