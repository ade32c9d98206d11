"""Which processes run in sandboxes and how much memory they take, read from /proc. Linux only; elsewhere nothing is known."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from stillroom_harbor.exact_process import stat_fields

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    resident_bytes: int


def read_process(pid: int) -> Process | None:
    """One process; None if it is gone."""
    fields = stat_fields(pid)
    return None if fields is None else Process(pid, int(fields[1]), int(fields[21]) * _PAGE)


def all_processes() -> list[Process]:
    """Every process that can be seen: one read per process, however many sandboxes ask."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    found = (read_process(int(name)) for name in names if name.isdigit())
    return [process for process in found if process is not None]


def trees(roots: Iterable[int], processes: list[Process]) -> dict[int, list[Process]]:
    """The processes of each root, itself included. What loses its parent in a sandbox becomes a child of the sandbox's first process."""
    children: dict[int, list[Process]] = {}
    known = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
        known[process.pid] = process
    found = {}
    for root in roots:
        tree = [known[root]] if root in known else []
        for process in tree:
            tree += children.get(process.pid, ())
        found[root] = tree
    return found


def proportional_bytes(processes: Iterable[Process]) -> int:
    """Memory with shared pages counted once (PSS); of a process that does not tell, its resident memory."""
    return sum(_pss(process) for process in processes)


def _pss(process: Process) -> int:
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except FileNotFoundError:
        return 0
    except OSError:
        return process.resident_bytes
    return 0
