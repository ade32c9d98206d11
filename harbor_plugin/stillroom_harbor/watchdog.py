"""Notices a trial that blocks the event loop, on which all trials of the runner depend, and interrupts it.

An environment or agent by import path may call `time.sleep` or wait for a socket where it should await: until it is done no other trial gets
on, and the runner answers no ping. A thread that counts the loop's beats sees it, finds the trial whose code is running, and raises
LoopBlocked in it, which ends that trial alone. Code that cannot be interrupted ends with the whole runner, which is killed for its silence;
before that the runner has said whose trial it was.
"""

import asyncio
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar

_TICK_SEC = 0.5
_FRAMES_TOLD = 3

trial: ContextVar[str | None] = ContextVar("stillroom_trial", default=None)
"""The id of the trial to which the current asyncio task belongs."""


class LoopBlocked(RuntimeError):
    """Raised in the code of a trial that let nothing else run for too long."""


class Watchdog:
    """Watches the event loop of the main thread. `told(trial, where)` is called, in the watching thread, when a trial blocks it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_sec: float, told: Callable[[str, str], None]):
        self._loop, self._limit_sec, self._told = loop, limit_sec, told
        self._beats = 0
        self._guilty: asyncio.Task[object] | None = None

    def start(self) -> None:
        """To be called in the main thread, in the running loop."""
        signal.signal(signal.SIGUSR1, self._interrupt)
        self._beat()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def _beat(self) -> None:
        self._beats += 1
        self._loop.call_later(_TICK_SEC, self._beat)

    def _watch(self) -> None:
        # Counted in ticks of this thread, so that a pause of the whole process is no blocked loop.
        seen, silent = self._beats, 0
        while not self._loop.is_closed():
            time.sleep(_TICK_SEC)
            silent = silent + 1 if self._beats == seen else 0
            seen = self._beats
            if silent == max(1, round(self._limit_sec / _TICK_SEC)):
                self._find_and_interrupt()

    def _find_and_interrupt(self) -> None:
        task = asyncio.current_task(self._loop)
        identity = task.get_context().get(trial) if task else None
        if task is None or identity is None:
            return
        main = threading.main_thread().ident
        frame = sys._current_frames().get(main) if main is not None else None
        where = " < ".join(f"{it.filename}:{it.lineno} {it.name}" for it in reversed(traceback.extract_stack(frame)[-_FRAMES_TOLD:]))
        self._told(identity, where)
        self._guilty = task
        if main is not None:
            signal.pthread_kill(main, signal.SIGUSR1)

    def _interrupt(self, _signal: int, _frame: object) -> None:
        guilty, self._guilty = self._guilty, None
        if guilty is not None and asyncio.current_task(self._loop) is guilty:
            raise LoopBlocked(f"the trial let nothing else run for {self._limit_sec:g} s: code in it waits without await")
