"""Resident runner: many trials in one process, JSON lines in and out. `python -m stillroom_harbor.runner`

In (stdin): {"op": "run", "id", "config": TrialConfig, "secrets": {NAME: value}, "gateway": URL | null} ·
{"op": "cancel", "id"} · {"op": "ping"} · end of file = cancel all, clean up, exit. `secrets` never reach a file: the agent reads them in memory.
`gateway` (http://HOST:PORT) is where a program in a sandbox without network may connect to, and the only place.

Out (stdout, nothing else is ever printed there):
{"type": "ready", "pid", "harborVersion"}                 once, when trials can be sent
{"type": "pong", "memory"}                                the answer to a ping: the runner lives; most bytes that each trial used so far
{"type": "event", "id", "event"}                          a harbor TrialEvent (start, environment-start, agent-start, ...)
{"type": "blocked", "id", "where"}                        this trial lets nothing else run, and is interrupted if it can be
{"type": "done", "id", "trialDir", "cancelled", "peakMemoryBytes"}   result.json is written; it says how the trial went
{"type": "failed", "id", "kind", "error", "peakMemoryBytes"}         no result.json; kind: bad-request | bad-trial | cancelled | crashed

A trial that crashes never takes the runner or its siblings along. SIGTERM and SIGINT act like the end of stdin.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import logging  # noqa: E402
from importlib.metadata import version  # noqa: E402

from harbor.models.trial.config import TrialConfig  # noqa: E402
from harbor.trial.hooks import TrialEvent, TrialHookEvent  # noqa: E402
from harbor.trial.trial import Trial  # noqa: E402

from stillroom_harbor import agents, environments, litellm_agents, memory, runner_dir, speedups, watchdog  # noqa: E402
from stillroom_harbor.gateway_relay import use_gateway  # noqa: E402
from stillroom_harbor.sweep import sweep_all  # noqa: E402
from stillroom_harbor.trial_secrets import redact, redact_files, use_secrets  # noqa: E402
from stillroom_harbor.watchdog import Watchdog  # noqa: E402

_LINE_MAX_BYTES = 16 << 20
_ERROR_MAX_CHARS = 2000
# A trial may hold the loop so long; the worker kills a runner that answers nothing for longer.
_BLOCKED_SEC = float(os.environ.get("STILLROOM_BLOCKED_SEC", "20"))


class Protocol:
    """The line protocol's way out. It owns the real stdout; whatever else prints goes to stderr."""

    def __init__(self) -> None:
        self._out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lock = threading.RLock()

    def send(self, **message: Any) -> None:
        try:
            with self._lock:  # the watchdog speaks in a thread of its own
                self._out.write(json.dumps(message) + "\n")
                self._out.flush()
        except BrokenPipeError:
            return  # the reader is gone; stdin ends too, and that stops the runner


class Runner:
    def __init__(self, protocol: Protocol):
        self._protocol = protocol
        self._trials: dict[str, asyncio.Task[None]] = {}
        self._dirs: set[Path] = set()
        self._names: dict[str, str] = {}

    async def serve(self) -> None:
        """Reads requests until stdin ends or a signal comes, then cancels what is running and waits for its clean-up."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        reader = asyncio.StreamReader(limit=_LINE_MAX_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        Watchdog(loop, _BLOCKED_SEC, lambda identity, where: self._protocol.send(type="blocked", id=identity, where=where)).start()
        self._protocol.send(type="ready", pid=os.getpid(), harborVersion=version("harbor"))
        reading = asyncio.create_task(self._read(reader, ended))
        await ended.wait()
        reading.cancel()
        for task in self._trials.values():
            task.cancel()
        await asyncio.gather(*self._trials.values(), return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader, ended: asyncio.Event) -> None:
        try:
            while line := await reader.readline():
                self._take(line)
        finally:
            ended.set()

    def _take(self, line: bytes) -> None:
        request: Any = None
        try:
            request = json.loads(line)
            match request["op"]:
                case "run":
                    self._run(request)
                case "cancel":
                    if task := self._trials.get(request["id"]):
                        task.cancel()
                case "ping":
                    self._protocol.send(type="pong", memory=self._memory())
                case other:
                    raise ValueError(f"unknown op {other!r}")
        except Exception as error:
            identity = request.get("id") if isinstance(request, dict) else None
            self._protocol.send(type="failed", id=identity, kind="bad-request", error=_words(error), peakMemoryBytes=None)

    def _memory(self) -> dict[str, int]:
        peaks = {identity: memory.peak_bytes(name) for identity, name in self._names.items()}
        return {identity: peak for identity, peak in peaks.items() if peak is not None}

    def _end(self, identity: str, **message: Any) -> None:
        """The last word about a trial."""
        name = self._names.pop(identity, None)
        peak = None if name is None else memory.peak_bytes(name)
        if name is not None:
            memory.forget(name)
        self._protocol.send(id=identity, peakMemoryBytes=peak, **message)

    def _run(self, request: dict[str, Any]) -> None:
        identity = request["id"]
        config = TrialConfig.model_validate(request["config"])
        trial_dir = config.trials_dir / config.trial_name
        if identity in self._trials or trial_dir in self._dirs:
            raise ValueError(f"trial {identity} in {trial_dir} is already running")
        task = asyncio.create_task(self._trial(identity, config, request))
        self._trials[identity] = task
        self._names[identity] = config.trial_name
        self._dirs.add(trial_dir)
        task.add_done_callback(lambda ended: self._forget(ended, identity, trial_dir))

    def _forget(self, task: asyncio.Task[None], identity: str, trial_dir: Path) -> None:
        self._trials.pop(identity)
        self._dirs.remove(trial_dir)
        if task.cancelled():  # before its first step, so that it could not say so itself
            self._end(identity, type="failed", kind="cancelled", error="cancelled before it began")

    async def _trial(self, identity: str, config: TrialConfig, request: dict[str, Any]) -> None:
        use_secrets(request.get("secrets") or {})
        use_gateway(request.get("gateway"))
        watchdog.trial.set(identity)
        trial_dir = config.trials_dir / config.trial_name
        kind, trial = "bad-trial", None
        # harbor would write over an earlier trial of this name file by file and mix the two.
        runner_dir.remove_tree(trial_dir)
        try:
            await litellm_agents.import_client(config)
            kind = "crashed"
            await environments.require_usable(config.environment)
            kind = "bad-trial"
            trial = await Trial.create(config)
            kind = "crashed"
            for event in TrialEvent:
                trial.add_hook(event, self._hook(identity))
            try:
                await trial.run()
            finally:
                redact_files(trial_dir)  # what a server's words brought in; nothing of ours writes a secret
            self._end(identity, type="done", trialDir=str(trial_dir), cancelled=False)
        except asyncio.CancelledError:
            if (trial_dir / "result.json").exists():
                self._end(identity, type="done", trialDir=str(trial_dir), cancelled=True)
            else:
                self._end(identity, type="failed", kind="cancelled", error="cancelled before it began")
        except (Exception, SystemExit) as error:  # some of harbor's parts exit where they should raise
            self._end(identity, type="failed", kind=kind, error=redact(_words(error)))
        finally:
            if trial is not None:
                speedups.forget_loggers(trial)

    def _hook(self, identity: str) -> Any:
        async def send(event: TrialHookEvent) -> None:
            self._protocol.send(type="event", id=identity, event=event.event.value)

        return send


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_MAX_CHARS]


def main() -> None:
    protocol = Protocol()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    # A trial's own log file gets everything; the runner's stderr only what nobody else records.
    logging.getLogger("harbor").propagate = False
    speedups.apply()
    agents.apply()
    sweep_all()
    gc.collect()
    gc.freeze()
    asyncio.run(Runner(protocol).serve())


if __name__ == "__main__":
    main()
