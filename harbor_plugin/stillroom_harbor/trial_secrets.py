"""Secrets of the running trial, handed to its agent without passing through the TrialConfig, which harbor stores on disk."""

import re
from collections.abc import Mapping
from contextvars import ContextVar

_current: ContextVar[Mapping[str, str]] = ContextVar("stillroom_trial_secrets", default={})


def use_secrets(secrets: Mapping[str, str]) -> None:
    """Sets the secrets of the current asyncio task and the tasks it starts: one task per trial."""
    _current.set(dict(secrets))


def fill_in(text: str) -> str:
    """Replaces `${NAME}` by the trial's secret of that name. Raises ValueError if the trial has none."""

    def value(match: re.Match[str]) -> str:
        secrets = _current.get()
        if match[1] not in secrets:
            raise ValueError(f"the trial has no secret {match[1]}; the runner's `secrets` must carry it")
        return secrets[match[1]]

    return re.sub(r"\$\{(\w+)\}", value, text)


def redact(text: str) -> str:
    """Replaces every secret of the trial, for messages that end up in files."""
    for secret in _current.get().values():
        if secret:
            text = text.replace(secret, "[REDACTED]")
    return text
