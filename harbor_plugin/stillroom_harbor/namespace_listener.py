"""Opens a listening socket inside another process's network namespace and hands it over a Unix socket. Started by gateway_relay.py.

`python -I -S namespace_listener.py FD PID PORT`. A program of its own: a process can only enter a user namespace while it has one thread.
"""

import fcntl
import os
import socket
import sys

_NS_GET_USERNS = 0xB701  # ioctl_ns(2): the user namespace that owns a namespace


def enter_network_of(pid: int) -> None:
    """Root may enter at once; anybody else needs the rights that the namespace's owner has in the user namespace it belongs to."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.setns(network, os.CLONE_NEWNET)
    except PermissionError:
        os.setns(fcntl.ioctl(network, _NS_GET_USERNS), os.CLONE_NEWUSER)
        os.setns(network, os.CLONE_NEWNET)


def main() -> None:
    handover, pid, port = map(int, sys.argv[1:])
    enter_network_of(pid)
    with socket.socket(fileno=handover) as out, socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        socket.send_fds(out, [b"ok"], [listener.fileno()])


if __name__ == "__main__":
    main()
