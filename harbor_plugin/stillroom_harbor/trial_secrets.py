"""Secrets of the running trial, handed to its agent without passing through the TrialConfig, which harbor stores on disk."""

import mmap
import os
import re
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
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

    return _PLACEHOLDER.sub(value, text)


def fill_in_known(value: Any) -> Any:
    """The same for every string in a JSON-like value, but only for secrets that the trial has: any other `${NAME}` is left as it is."""
    match value:
        case str():
            secrets = _current.get()
            return _PLACEHOLDER.sub(lambda match: secrets.get(match[1], match[0]), value)
        case dict():
            return {name: fill_in_known(item) for name, item in value.items()}
        case list():
            return [fill_in_known(item) for item in value]
        case _:
            return value


def redact(text: str) -> str:
    """Replaces every secret of the trial, for messages that end up in files."""
    for secret in _current.get().values():
        if secret:
            text = text.replace(secret, "[REDACTED]")
    return text


def redact_files(folder: Path) -> None:
    """Overwrites every secret of the trial in the files below a folder, in place: a file keeps its size, and a large one is never loaded."""
    secrets = [secret.encode() for secret in _current.get().values() if secret]
    if not secrets:
        return
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink() and path.stat().st_size > 0:
                _redact_file(path, secrets)
        except OSError:
            continue  # gone, or not readable for us: then nobody here wrote a secret into it


def _redact_file(path: Path, secrets: list[bytes]) -> None:
    with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        for secret in secrets:
            at = content.find(secret)
            while at >= 0:
                content[at : at + len(secret)] = b"[REDACTED]".ljust(len(secret), b"*")[: len(secret)]
                at = content.find(secret, at + len(secret))
