"""Work that harbor repeats for every trial of a task (parsing, hashing, ignore rules), done once per state of the task's folder.

A folder counts as unchanged while the names, sizes and times of its entries are: a changed task is read anew.
"""

import copy
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harbor.models.job import lock as job_lock
from harbor.models.task.file_filter import TaskFileFilter
from harbor.models.task.task import Task
from harbor.models.trial.config import TrialConfig
from harbor.publisher.packager import Packager
from harbor.tasks.client import TaskDownloadResult
from harbor.trial.trial import Trial

Signature = tuple[tuple[str, int, int, int], ...]


class _Known:
    """What is known about one state of a task's folder."""

    def __init__(self, signature: Signature):
        self.signature = signature
        self.answers: dict[tuple[Any, ...], Any] = {}


_known: dict[str, _Known] = {}


def apply() -> None:
    """Patches harbor 0.25.0 in this process."""
    load_task = Trial._load_task

    async def load(config: TrialConfig) -> tuple[Task, TaskDownloadResult]:
        if config.task.path is None or config.task.is_git_task() or config.extra_instruction_paths or config.extra_instructions:
            return await load_task(config)
        folder = os.path.abspath(config.task.path)
        signature = _signature(folder)
        known = _known.get(folder)
        if known is None or known.signature != signature:
            known = _known[folder] = _Known(signature)
        key = ("task", str(config.task.path), config.verifier.disable)
        if key not in known.answers:
            known.answers[key] = await load_task(config)
        task, download = known.answers[key]
        return _own_copy(task), download

    Trial._load_task = staticmethod(load)  # type: ignore[method-assign]
    Packager.compute_content_hash = staticmethod(_once("content", Packager.compute_content_hash, str))  # type: ignore[method-assign]
    job_lock._task_package_version = _once("version", job_lock._task_package_version, str)
    job_lock._task_verifier_environment_mode = _once("mode", job_lock._task_verifier_environment_mode, str)
    Task.checksum = property(_once("checksum", Task.checksum.fget, lambda task: str(task.task_dir)))  # type: ignore[attr-defined]
    TaskFileFilter.is_excluded = _once("excluded", TaskFileFilter.is_excluded, _filter_folder)  # type: ignore[method-assign]
    TaskFileFilter.select = _once("select", TaskFileFilter.select, _filter_folder)  # type: ignore[method-assign]


def _own_copy(task: Task) -> Task:
    """A task whose environment settings can be written to: environments put their overrides into them."""
    mine = copy.copy(task)
    if task.config.steps or task.config.verifier.environment is not None:
        mine.config = task.config.model_copy(deep=True)
    else:
        mine.config = task.config.model_copy(update={"environment": task.config.environment.model_copy()})
    return mine


def _filter_folder(file_filter: TaskFileFilter, _path: Path) -> str:
    return str(file_filter.task_dir)


def _once(name: str, compute: Callable[..., Any], folder_of: Callable[..., str]) -> Callable[..., Any]:
    """Remembers `compute(first, *rest)` for as long as the folder of `first` is unchanged."""

    def remembered(first: Any, *rest: Any) -> Any:
        known = _known.get(folder_of(first, *rest))
        if known is None:
            return compute(first, *rest)
        key = (name, *map(str, rest))
        if key not in known.answers:
            known.answers[key] = compute(first, *rest)
        return known.answers[key]

    return remembered


def _signature(folder: str) -> Signature:
    entries: list[tuple[str, int, int, int]] = []
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as listing:
            for entry in listing:
                info = entry.stat(follow_symlinks=False)
                entries.append((entry.path, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return tuple(sorted(entries))


def forget_loggers(trial: Trial) -> None:
    """harbor makes loggers per trial that Python keeps for ever; a resident process has to drop them."""
    loggers = logging.Logger.manager.loggerDict
    for name in [name for name in loggers if name.startswith(trial.logger.name)]:
        del loggers[name]
