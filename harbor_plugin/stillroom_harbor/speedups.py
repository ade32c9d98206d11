"""Work that harbor repeats for every trial of the same task, done once per content of the task's folder."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def apply() -> None:
    pass


def forget_loggers(trial: Any) -> None:
    """harbor makes loggers per trial that Python keeps for ever; a resident process has to drop them."""
    prefix = trial.logger.name
    loggers = logging.Logger.manager.loggerDict
    for name in [name for name in loggers if name.startswith(prefix)]:
        del loggers[name]
