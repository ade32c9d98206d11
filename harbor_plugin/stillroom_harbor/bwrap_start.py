"""Starts bubblewrap with the exec server in it, as another user and in a control group where that is asked for."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from stillroom_harbor.bwrap_options import MAILBOX, SANDBOX_ENV
from stillroom_harbor.cgroup import Group

_SHELL = "/bin/bash"


@dataclass(frozen=True)
class Start:
    """How to start bubblewrap: its program, its arguments but those of a single life, the user it starts as, limits as shell text, and its control group."""

    program: str
    arguments: list[str]
    uid: int | None
    ulimits: str
    group: Group | None = None

    def spawn(self, log: Path, link_fd: int, info_fd: int) -> subprocess.Popen[bytes]:
        """One process: `link_fd` is the exec server's end of the socket, bubblewrap tells its child's pid on `info_fd`, and what it says goes to `log`."""
        # Arguments go through a file in memory: the sandbox can read its own command line, which must not name host paths.
        args_fd = os.memfd_create("arguments")
        os.write(args_fd, b"".join(arg.encode() + b"\0" for arg in [*self.arguments, "--info-fd", str(info_fd)]))
        os.lseek(args_fd, 0, os.SEEK_SET)
        move = "" if link_fd == 3 else f"exec 3<&{link_fd} {link_fd}>&-; "
        command = ["bash", "-c", move + self.ulimits + _exec_server(), "exec-server", MAILBOX]
        switch = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        doors: list[int] = []
        try:
            doors = self.group.doors() if self.group else []
            first, program = _through(doors, self.program)
            with open(log, "wb") as file:
                # From the main thread: the kernel's parent-death signal follows the thread that forked.
                return subprocess.Popen(
                    [*first, "--args", str(args_fd), "--", *command],
                    executable=program,
                    pass_fds=[link_fd, info_fd, args_fd, *doors],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    env=SANDBOX_ENV,
                    cwd="/",
                    **switch,
                )
        finally:
            for fd in (args_fd, *doors):
                os.close(fd)


def _through(doors: list[int], program: str) -> tuple[list[str], str]:
    """The first words of a command and its program: where there is a control group, a shell that enters it and then becomes the program."""
    if not doors or not os.path.exists(_SHELL):
        return ["bwrap"], program
    # Who cannot enter starts all the same: memory is sampled, too.
    enter = "".join(f"echo 0 >&{door}; exec {door}>&-; " for door in doors)
    return ["bash", "-c", enter + 'exec -a bwrap "$@"', "bash", program], _SHELL


@cache
def _exec_server() -> str:
    lines = resources.files(__package__).joinpath("exec_server.sh").read_text().splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))
