"""Processes by exact id: a pid is used again, so a process is its pid and the moment it was born. Linux only; elsewhere nothing is known."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable


def stat_fields(pid: int) -> list[str] | None:
    """What proc(5) tells of a process from its state (field 3) on; None if there is none, or no /proc to tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The name, in parentheses, may hold anything.
    return stat[stat.rindex(b")") + 2 :].decode().split()


def born(pid: int) -> str | None:
    """When a process was born, in clock ticks since boot; None if there is none, or no /proc to tell."""
    fields = stat_fields(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def namespace() -> str | None:
    """Which processes a pid of ours can mean: containers that share a directory need not share process ids."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def kill_if(pid: int, is_meant: Callable[[], bool]) -> bool:
    """SIGKILL for exactly the process that `is_meant` recognises: no other can get its pid between the look and the kill."""
    try:
        process = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return False
    try:
        if not is_meant():
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(process)


async def wait_for(process: subprocess.Popen[bytes]) -> None:
    """Waits for the end of a child; one that does not end is killed."""
    if process.poll() is not None:
        return
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    pidfd = os.pidfd_open(process.pid)
    loop.add_reader(pidfd, lambda: ended.done() or ended.set_result(None))
    try:
        async with asyncio.timeout(10):
            await ended
    except TimeoutError:
        process.kill()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
    process.wait()
