"""An agent of one's own: any class that harbor can import and that asks its model through the trial's gateway.

Its harness document: {"runtime": "import", "import_path": "shell_agent:ShellAgent", "kwargs": {"key": "${STILLROOM_GATEWAY_KEY}"}}.
Stillroom gives the other options, and the key where the agent runs: harbor's files only ever hold `${STILLROOM_GATEWAY_KEY}`.
"""

from pathlib import Path
from typing import Any

import httpx
from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

ASK = "Solve the task with shell commands. Answer with one command and nothing else, or with DONE when the task is solved.\n\n"


class ShellAgent(BaseAgent):
    """Sends the task, runs each answer in the sandbox and sends back what it printed, until the model says DONE."""

    def __init__(self, logs_dir: Path, *, api_base: str, key: str, model: str, max_turns: int, temperature: float, max_tokens: int, **more: Any):
        super().__init__(logs_dir=logs_dir, **more)
        self._url, self._key, self._max_turns = f"{api_base}/chat/completions", key, max_turns
        self._body = {"model": model, "temperature": temperature, "max_tokens": max_tokens}

    @staticmethod
    def name() -> str:
        return "shell-agent"

    def version(self) -> str | None:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing to install."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        context.metadata = {"n_turns": 0, "stop": "max_turns"}  # from the start, and changed in place: a timeout keeps it
        messages = [{"role": "user", "content": ASK + instruction}]
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {self._key}"}, timeout=None) as client:
            while context.metadata["n_turns"] < self._max_turns:
                answer = await client.post(self._url, json={**self._body, "messages": messages})
                answer.raise_for_status()  # a call that is refused is not made again: only 429 and 503 are worth it
                text = answer.json()["choices"][0]["message"]["content"] or ""
                context.metadata["n_turns"] += 1
                if text.strip() == "DONE":
                    context.metadata["stop"] = "done"
                    return
                result = await environment.exec(text, timeout_sec=60)
                messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"exit {result.return_code}\n{result.stdout}"}]
