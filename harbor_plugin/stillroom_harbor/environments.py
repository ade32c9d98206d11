"""What harbor's environments need, asked of harbor itself. `python -m stillroom_harbor.environments [--only NAME_OR_IMPORT_PATH]`

Prints JSON lines, each as soon as it is known:
{"type": "harbor", "version", "python", "names": [...], "keys": {"environment": [...], "verifier": [...]}}     once, first
{"type": "environment", "name", "checked": bool, "reason": str | null, "extra": str | null, "missing": [packages]}      one for each
`checked` is false where harbor has no check of its own for the environment: nobody knows before a trial.
An environment whose own check takes too long has no line; the process ends all the same.
"""

import asyncio
import json
import os
import platform
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

os.environ.setdefault("HARBOR_TELEMETRY", "0")

from harbor.environments import factory  # noqa: E402
from harbor.environments.base import BaseEnvironment  # noqa: E402
from harbor.models.environment_type import EnvironmentType  # noqa: E402
from harbor.models.trial.config import EnvironmentConfig, VerifierConfig  # noqa: E402
from packaging.requirements import Requirement  # noqa: E402

_ANSWER_SEC = 8.0
_PREFLIGHT_SEC = 15.0
_REASON_MAX_CHARS = 500


class EnvironmentUnusable(RuntimeError):
    """The environment's own check says that it cannot be used on this machine."""


def why_not(name: str) -> str | None:
    """Runs harbor's own check of an environment, by type or import path: which program or credential it lacks. None if nothing."""
    try:
        if ":" in name:
            factory.EnvironmentFactory.run_preflight(None, name)
        else:
            factory.EnvironmentFactory.run_preflight(EnvironmentType(name))
    except (Exception, SystemExit) as error:  # harbor's checks exit where they should raise
        return " ".join(str(error).split())[:_REASON_MAX_CHARS] or type(error).__name__
    return None


def has_check(name: str) -> bool:
    """Whether the environment's class has a check of its own; true if the class itself cannot be loaded, which is an answer."""
    try:
        found = factory.import_symbol(name) if ":" in name else factory._load_environment_class(EnvironmentType(name))
    except Exception:
        return True
    return found.preflight.__func__ is not BaseEnvironment.preflight.__func__


def missing_packages(extra: str | None) -> list[str]:
    """Packages of one of harbor's extras that are not installed."""
    if extra is None:
        return []
    wanted = [Requirement(text) for text in requires("harbor") or []]
    needed = [it.name for it in wanted if it.marker and "extra" in str(it.marker) and it.marker.evaluate({"extra": extra})]
    return [package for package in needed if not _is_installed(package)]


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


_usable: set[str] = set()


async def require_usable(config: EnvironmentConfig) -> None:
    """Asked before a trial is begun, and of each kind of environment again until it once said yes. Raises EnvironmentUnusable."""
    name = config.import_path or (config.type.value if config.type else "")
    if name in _usable or (config.import_path and not _imports(config.import_path)):
        return  # what cannot be imported is refused by harbor, by name
    try:
        reason = await asyncio.wait_for(asyncio.to_thread(why_not, name), _PREFLIGHT_SEC)
    except TimeoutError:
        reason = f"its own check gave no answer within {_PREFLIGHT_SEC:.0f} s"
    if reason is not None:
        raise EnvironmentUnusable(f"environment {name} cannot be used on this machine: {reason}")
    _usable.add(name)


def _imports(import_path: str) -> bool:
    try:
        return hasattr(factory.import_symbol(import_path), "preflight")
    except Exception:
        return False


def _extra_of(name: str) -> str | None:
    # harbor keeps no public record of which of its extras an environment needs.
    entry = next((entry for kind, entry in factory._ENVIRONMENT_REGISTRY.items() if kind.value == name), None)
    return entry.pip_extra if entry else None


def _keys(model: Any) -> list[str]:
    return sorted(model.model_json_schema()["properties"])


def main() -> None:
    only = sys.argv[sys.argv.index("--only") + 1 :] if "--only" in sys.argv else None
    names = [it.value for it in EnvironmentType]
    out, lock = os.fdopen(os.dup(1), "w", encoding="utf-8"), threading.Lock()
    os.dup2(2, 1)  # what the checks print is not ours

    def say(**line: Any) -> None:
        with lock:
            out.write(json.dumps(line) + "\n")
            out.flush()

    def answer(name: str) -> None:
        extra = _extra_of(name)
        reason = why_not(name)
        say(type="environment", name=name, checked=has_check(name), reason=reason, extra=extra, missing=missing_packages(extra))

    keys = {"environment": _keys(EnvironmentConfig), "verifier": _keys(VerifierConfig)}
    say(type="harbor", version=version("harbor"), python=platform.python_version(), names=names, keys=keys)
    pool = ThreadPoolExecutor(max_workers=8)
    wait([pool.submit(answer, name) for name in (names if only is None else only)], timeout=_ANSWER_SEC)
    os._exit(0)  # a check that hangs is not waited for


if __name__ == "__main__":
    main()
