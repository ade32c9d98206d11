"""A small agent: chat completions turn by turn, one shell command per turn. `stillroom_harbor.turn_agent:TurnAgent`.

The model's name comes in `kwargs`, so that harbor does not import litellm (4-5 CPU seconds, 120 MB) for it.
"""

import json
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from stillroom_harbor.http_client import shared_client
from stillroom_harbor.refusals import stop_of
from stillroom_harbor.trial_secrets import fill_in, redact

_ROLLOUT_LISTS = ("prompt_token_ids", "completion_token_ids", "logprobs")


class ModelCallError(Exception):
    """The model server refused a call; the message carries its status and the head of its answer."""


class AuthenticationError(ModelCallError):
    """The key is refused (401, 403): no other call would be answered either. Named as litellm names it."""


class EpisodeOver(Exception):
    """The gateway answers no further call: `overflow` when the conversation does not fit the model, else the limit that is reached."""

    def __init__(self, stop: str):
        super().__init__(stop)
        self.stop = stop


class TurnAgent(BaseAgent):
    """Sends the instruction, runs what the model answers, sends back `[exit code] stdout`, until the model says the stop word.

    kwargs: `api_base` (ends before /chat/completions) and `api_key` may hold `${NAME}` of the trial's secrets; `model`;
    `max_turns`; `temperature`; `max_tokens` per turn; `stop_word`; `system_prompt`; `observation_max_chars`;
    `command_timeout_sec`; `extra_body` (more fields of each request); `collect_rollout_details`.

    Metadata of the result: `n_turns` (model calls answered) and `stop`, one of done | max_turns | overflow | length, or a limit of the
    trial, e.g. usd_limit.
    """

    def __init__(
        self,
        logs_dir: Path,
        *,
        api_base: str,
        model: str,
        max_turns: int,
        temperature: float,
        max_tokens: int,
        api_key: str = "${STILLROOM_GATEWAY_KEY}",
        stop_word: str = "done",
        system_prompt: str | None = None,
        observation_max_chars: int = 4000,
        command_timeout_sec: int = 60,
        extra_body: dict[str, Any] | None = None,
        collect_rollout_details: bool = False,
        **kwargs: Any,
    ):
        super().__init__(logs_dir=logs_dir, **kwargs)
        self._url = fill_in(api_base).rstrip("/") + "/chat/completions"
        self._headers = {"Authorization": f"Bearer {fill_in(api_key)}"}
        self._body = {"model": model, "temperature": float(temperature), "max_tokens": int(max_tokens), **(extra_body or {})}
        self._max_turns, self._stop_word, self._system_prompt = int(max_turns), stop_word, system_prompt
        self._observation_max_chars, self._command_timeout_sec = int(observation_max_chars), int(command_timeout_sec)
        self._rollout: dict[str, list[Any]] | None = None
        if collect_rollout_details:
            self._rollout = {name: [] for name in _ROLLOUT_LISTS}
            self._body |= {"logprobs": True, "return_token_ids": True}

    @staticmethod
    def name() -> str:
        return "stillroom-turn-agent"

    def version(self) -> str | None:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing to install: the sandbox only needs a shell."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        messages = [{"role": "system", "content": self._system_prompt}] if self._system_prompt else []
        messages.append({"role": "user", "content": instruction.strip()})
        # Shared with the result from the start and filled in place: a timeout keeps what was done.
        metadata: dict[str, Any] = {"n_turns": 0, "stop": None}
        context.metadata = metadata
        if self._rollout is not None:
            context.rollout_details = [self._rollout]  # type: ignore[list-item]
        metadata["stop"] = await self._converse(messages, environment, metadata)

    async def _converse(self, messages: list[dict[str, Any]], environment: BaseEnvironment, metadata: dict[str, Any]) -> str:
        while True:
            try:
                choice = await self._complete(messages)
            except EpisodeOver as over:
                return over.stop
            metadata["n_turns"] += 1
            text = choice["message"]["content"] or ""
            messages.append({"role": "assistant", "content": text})
            if text.strip() == self._stop_word:
                return "done"
            if metadata["n_turns"] == self._max_turns:
                # The last command still runs: it may be what solves the task.
                await self._act(text, environment)
                return "length" if choice.get("finish_reason") == "length" else "max_turns"
            messages.append({"role": "user", "content": await self._act(text, environment)})

    async def _complete(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        status, answer = await shared_client().post(self._url, self._headers, {**self._body, "messages": messages})
        if status in (400, 410) and (stop := stop_of(_error_code(answer))):
            raise EpisodeOver(stop)
        if status != 200:
            refused = AuthenticationError if status in (401, 403) else ModelCallError
            raise refused(redact(f"HTTP {status} from the model server: {answer[:500].decode(errors='replace')}"))
        body = json.loads(answer)
        choice = body["choices"][0]
        if self._rollout is not None:
            self._rollout["prompt_token_ids"].append(body["prompt_token_ids"])
            self._rollout["completion_token_ids"].append(choice["token_ids"])
            self._rollout["logprobs"].append([token["logprob"] for token in choice["logprobs"]["content"]])
        return choice

    async def _act(self, command: str, environment: BaseEnvironment) -> str:
        """Runs one command; a command that outlives its time is an observation, not the end of the trial."""
        try:
            result = await environment.exec(command, timeout_sec=self._command_timeout_sec)
        except RuntimeError as error:
            if "timed out" not in str(error):
                raise
            return "[124]"
        output = (result.stdout or "").replace("\n", " ").strip()[: self._observation_max_chars].rstrip()
        return f"[{result.return_code}] {output}".rstrip()


def _error_code(answer: bytes) -> str | None:
    try:
        return json.loads(answer)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
