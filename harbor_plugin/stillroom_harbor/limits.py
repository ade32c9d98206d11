"""What a sandbox may use. Every limit has a default, and can be changed or turned off (null) by its name in `environment.kwargs.limits`.

`cpu_sec`, `memory_mb` (address space), `fsize_mb` and `nofile` are the kernel's limits of one process. `nproc` counts the processes and
threads of a whole sandbox, `total_memory_mb` the memory of all its processes and of its files on a RAM disk, `disk_mb` and `files` the
size and number of its files: guard.py ends the processes of a sandbox that is over one of these three. `download_mb` bounds what is
copied out of it for one directory of logs or artifacts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULTS: dict[str, int | None] = {
    "total_memory_mb": 4096,
    "disk_mb": 4096,
    "files": 300_000,
    "nproc": 1024,
    "fsize_mb": 1024,
    "nofile": 8192,
    "download_mb": 512,
    "cpu_sec": None,
    "memory_mb": None,
}
_ULIMITS = {
    "cpu_sec": ("-t", 1),
    "memory_mb": ("-v", 1024),
    "nproc": ("-u", 1),
    "fsize_mb": ("-f", 1024),
    "nofile": ("-n", 1),
}


@dataclass(frozen=True)
class Limits:
    """Checked limits; None is no limit. `asked` are the names that somebody set."""

    values: Mapping[str, int | None]
    asked: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> int | None:
        return self.values[name]

    def raised(self, name: str, needed: int | None) -> "Limits":
        """The same with `name` at least `needed`, unless somebody set it."""
        value = self.values[name]
        if name in self.asked or value is None or needed is None or needed <= value:
            return self
        return Limits({**self.values, name: needed}, self.asked)

    def without(self, name: str) -> "Limits":
        """The same without a limit that nobody asked for."""
        return self if name in self.asked else Limits({**self.values, name: None}, self.asked)

    def ulimit_script(self) -> str:
        """Shell text that applies the limits of processes, hard, so that nothing inside can raise them again; else exit code 9."""
        lines = ["ulimit -c 0; "]
        for name, (flag, unit) in _ULIMITS.items():
            value = self.values[name]
            if value is None:
                continue
            # A lower hard limit of the host's own stays; a system without this kind of limit says so, if somebody asked for it.
            failed = "|| exit 9" if name in self.asked else "2> /dev/null || :"
            lines.append(f"ulimit {flag} {value * unit} {failed}; ")
        return "".join(lines)


def parse_limits(asked: Mapping[str, int | None]) -> Limits:
    """The defaults with `asked` over them. Raises ValueError on an unknown name or a bad number."""
    for name, value in asked.items():
        if name not in DEFAULTS:
            raise ValueError(f"limits.{name} is unknown; known are {', '.join(DEFAULTS)}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
            raise ValueError(f"limits.{name} must be a whole number above 0, or null for no limit, not {value!r}")
    return Limits({**DEFAULTS, **asked}, frozenset(asked))

