"""Resource limits of sandboxed commands, as `ulimit` lines: hard limits, which nothing inside can raise again.

`cpu_sec`, `memory_mb` (address space) and `fsize_mb` count per process and not per sandbox; `nproc` counts per sandbox under
bubblewrap, and is ignored by the kernel when the runner is the real root.
"""

from collections.abc import Mapping

_ULIMITS = {
    "cpu_sec": ("-t", 1),
    "memory_mb": ("-v", 1024),
    "nproc": ("-u", 1),
    "fsize_mb": ("-f", 1024),
    "nofile": ("-n", 1),
}


def ulimit_script(limits: Mapping[str, int]) -> str:
    """Shell text that applies the limits, or fails with exit code 9. Raises ValueError on an unknown name or a bad number."""
    lines = ["ulimit -c 0; "]
    for name, value in limits.items():
        if name not in _ULIMITS:
            raise ValueError(f"limits.{name} is unknown; known are {', '.join(_ULIMITS)}")
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ValueError(f"limits.{name} must be a whole number above 0, not {value!r}")
        flag, unit = _ULIMITS[name]
        # macOS has no address-space limit and says so: better to fail than to run without the limit that was asked for.
        lines.append(f"ulimit {flag} {value * unit} || exit 9; ")
    return "".join(lines)
