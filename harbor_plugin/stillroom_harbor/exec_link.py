"""The host's end of the socket to the exec server of a sandbox."""

import asyncio


class ExecLink(asyncio.Protocol):
    """Answers by the key of what they answer; once the socket is closed, every wait fails with ConnectionResetError."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[int]] = {}
        self._buffer = b""
        self.closed = False

    def expect(self, key: str) -> asyncio.Future[int]:
        future = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self.closed:
            future.set_exception(ConnectionResetError())
        return future

    def data_received(self, data: bytes) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        self._buffer = self._buffer[-64:]  # an answer is short: whatever else comes was not sent by the server
        for line in lines:
            key, _, code = line.decode(errors="replace").partition(" ")
            future = self._waiting.pop(key, None)
            if future is not None and not future.done():
                future.set_result(int(code) if code.isdigit() and len(code) < 4 else 255)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionResetError())
