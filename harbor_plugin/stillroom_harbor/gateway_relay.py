"""A sandbox without network reaches one thing outside: the gateway of its trial, while its agent is at work.

The runner listens on 127.0.0.1 inside the sandbox's network namespace, on the gateway's own port, and passes bytes to the gateway and
back. Where they go is fixed before anything in the sandbox runs; nothing that is sent can choose another place.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import urlsplit

_CONNECTIONS_MAX = 64
_CHUNK_BYTES = 64 << 10
_LISTEN_TIMEOUT_SEC = 20.0

_gateway: ContextVar[str | None] = ContextVar("stillroom_gateway", default=None)


def use_gateway(url: str | None) -> None:
    """Sets where the gateway of the current asyncio task's trial listens, `http://HOST:PORT`."""
    _gateway.set(url)


def gateway_of_trial() -> tuple[str, int] | None:
    """Host and port of the trial's gateway; None where the runner was told none."""
    url = _gateway.get()
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None or parts.port is None:
        raise ValueError(f"the trial's gateway must be http://HOST:PORT, not {url}")
    return parts.hostname, parts.port


@asynccontextmanager
async def relay(init_pid: int, host: str, port: int) -> AsyncIterator[None]:
    """While open, 127.0.0.1:`port` in the sandbox of process `init_pid` is `host`:`port` outside. Closing ends all connections."""
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            if len(connections) <= _CONNECTIONS_MAX:
                await _connect(reader, writer, host, port)
        except (OSError, asyncio.CancelledError):
            pass  # the gateway is gone, the client is, or the agent's time is over: whoever is left sees a closed connection
        finally:
            connections.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(accept, sock=await _listen(init_pid, port))
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()


async def _connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    from_gateway, to_gateway = await asyncio.open_connection(host, port)
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass_on(reader, to_gateway))
            both.create_task(_pass_on(from_gateway, writer))
    except* OSError:
        pass
    finally:
        to_gateway.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()


async def _listen(init_pid: int, port: int) -> socket.socket:
    """A socket that listens inside the sandbox. Raises RuntimeError with the reason if there can be none."""
    ours, theirs = socket.socketpair()
    program = Path(__file__).with_name("namespace_listener.py")
    with ours:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(program), str(theirs.fileno()), str(init_pid), str(port)),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        try:
            async with asyncio.timeout(_LISTEN_TIMEOUT_SEC):
                _, said = await process.communicate()
        except TimeoutError:
            process.kill()
            raise RuntimeError("the sandbox's door to the gateway did not open in time") from None
        except asyncio.CancelledError:
            process.kill()
            raise
        # The answer, if there is one, is in the socket by now.
        _, fds, _, _ = socket.recv_fds(ours, 16, 1) if process.returncode == 0 else (b"", [], 0, None)
    if not fds:
        reason = said.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"the sandbox cannot be given a door to the gateway: {' '.join(reason) or f'exit code {process.returncode}'}")
    return socket.socket(fileno=fds[0])
