"""Removes what dead runners left on this machine, and ends those whose worker is dead. `python -m stillroom_harbor.sweep`

Prints one JSON line: {"removed": [directories]}.
"""

import json

from stillroom_harbor.runner_dir import sweep


def main() -> None:
    print(json.dumps({"removed": [str(path) for path in sweep()]}))


if __name__ == "__main__":
    main()
