"""What harbor's own agents that call a model through LiteLLM (terminus-2) need to live with a trial's gateway.

- The key. harbor stores an agent's options in config.json, lock.json, result.json and trajectory.json, so they only hold `${NAME}`; the
  secret itself is put into the client that makes the calls, and is nowhere else.
- The end. A conversation that has outgrown the model, or a limit of the trial, ends the episode: what the agent did is graded as it
  stands. harbor would try a refused call nine times and then skip the verifier.
"""

import asyncio
import sys
from importlib import import_module
from typing import Any

from harbor.models.agent.context import AgentContext
from harbor.models.trial.config import TrialConfig

from stillroom_harbor.refusals import code_in, is_final, stop_of
from stillroom_harbor.trial_secrets import fill_in

_CLIENT_MODULE = "harbor.llms.lite_llm"


class _Refused(BaseException):
    """No further call will be answered. Not an `Exception`: harbor's layers try those again."""

    def __init__(self, error: Exception, stop: str | None):
        super().__init__(str(error))
        self.error, self.stop = error, stop


_importing: asyncio.Future[Any] | None = None


def prepare(agent: Any) -> None:
    """Changes an agent that has harbor's LiteLLM client; leaves any other as it is."""
    # A module that is still being imported has no class yet, and then no agent has one.
    client_class = getattr(sys.modules.get(_CLIENT_MODULE), "LiteLLM", None)
    client = getattr(agent, "_llm", None)
    if client_class is not None and isinstance(client, client_class):
        _prepare(agent, client)


async def import_client(config: TrialConfig) -> None:
    """Imports LiteLLM if the trial will: seconds, in which the runner still answers when it is done in a thread. Trials wait for one import."""
    global _importing
    if config.agent.model_name is None:
        return
    if _importing is None or (_importing.done() and _importing.exception() is not None):
        _importing = asyncio.ensure_future(asyncio.to_thread(import_module, _CLIENT_MODULE))
    await asyncio.shield(_importing)


def _prepare(agent: Any, client: Any) -> None:
    client._llm_kwargs = {name: fill_in(value) if isinstance(value, str) else value for name, value in client._llm_kwargs.items()}
    raise_translated, run = client._handle_litellm_error, agent.run

    def end_or_raise(error: Exception) -> None:
        code = code_in(str(error))
        stop = stop_of(code)
        if is_final(code, getattr(error, "status_code", None)) or stop not in (None, "overflow"):
            raise _Refused(error, stop)
        raise_translated(error)  # with compaction, an overflow is not the end

    async def run_to_its_end(instruction: str, environment: Any, context: AgentContext) -> None:
        from harbor.llms.base import ContextLengthExceededError

        try:
            await run(instruction=instruction, environment=environment, context=context)
        except ContextLengthExceededError:
            stop = "overflow"
        except _Refused as refused:
            if refused.stop is None:
                raise refused.error from None
            stop = refused.stop
        else:
            return
        context.metadata = {**(context.metadata or {}), "stop": stop}

    client._handle_litellm_error = end_or_raise
    agent.run = run_to_its_end
