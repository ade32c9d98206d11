"""Removes what dead runners left on this machine, and ends those whose worker is dead. `python -m stillroom_harbor.sweep`

Prints one JSON line: {"removed": [directories]}.
"""

import json
import os
import tempfile
from pathlib import Path

from stillroom_harbor.runner_dir import sweep


def sweep_all() -> list[Path]:
    """Every place where a runner may have had sandboxes: the RAM disk, and the temp directory for when that was full."""
    named = os.environ.get("STILLROOM_SANDBOX_ROOT")
    roots = [named] if named else ["/dev/shm", tempfile.gettempdir()]
    return [path for root in roots for path in sweep(root)]


def main() -> None:
    print(json.dumps({"removed": [str(path) for path in sweep_all()]}))


if __name__ == "__main__":
    main()
