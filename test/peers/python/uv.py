"""Stands in for `uv run FLAGS -m MODULE ARGS`: runs MODULE with the Python that runs this.

The skyrl servers start their engine through `uv`, which would resolve and download an environment of its own.
"""

import os
import signal
import subprocess
import sys


def main() -> int:
    module_at = sys.argv.index("-m")
    child = subprocess.Popen([sys.executable, *sys.argv[module_at:]])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: os.kill(child.pid, received))
    return child.wait()


sys.exit(main())
