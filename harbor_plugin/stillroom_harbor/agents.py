"""Every agent of a trial passes through here as harbor makes it: it gets its key, in memory, and what its kind needs."""

import sys
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.agents.factory import AgentFactory
from harbor.models.trial.config import AgentConfig

from stillroom_harbor import document_agents, installed_agents, litellm_agents
from stillroom_harbor.trial_secrets import fill_in_known

_INSTALLED_MODULE = "harbor.agents.installed.base"


def apply() -> None:
    """Patches harbor 0.25.0 in this process."""
    create = AgentFactory.create_agent_from_config

    def create_prepared(config: AgentConfig, logs_dir: Path, **kwargs: Any) -> BaseAgent:
        document_agents.find_anew(config)
        config, prompt = document_agents.take_prompt(config)
        agent = create(_with_secrets(config), logs_dir=logs_dir, **kwargs)
        litellm_agents.prepare(agent)
        installed = getattr(sys.modules.get(_INSTALLED_MODULE), "BaseInstalledAgent", None)
        if installed is not None and isinstance(agent, installed):
            installed_agents.prepare(agent)
        if prompt is not None:
            document_agents.put_before(agent, prompt)
        return agent

    AgentFactory.create_agent_from_config = create_prepared  # type: ignore[method-assign]


def _with_secrets(config: AgentConfig) -> AgentConfig:
    """A copy that is only used to make the agent: the one that harbor writes into files keeps its `${NAME}`."""
    filled: dict[str, Any] = {"env": fill_in_known(config.env)}
    # harbor's own agents by name write their options into files of their own; ours reads `${NAME}` itself, and so does litellm_agents.
    if config.import_path is not None:
        filled["kwargs"] = fill_in_known(config.kwargs)
    return config.model_copy(update=filled)
