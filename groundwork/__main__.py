"""`groundwork`: alone the app, with words the commands (`groundwork ask ...` is `python -m engine ask ...`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def root() -> Path:
    """Where engine/, pages/ and assets/ are: inside the installed package, or the checkout that this file is in."""
    tree = Path(__file__).resolve().parent / "tree"
    return tree if tree.is_dir() else tree.parent.parent


def main() -> None:
    """Run the app or a command from the program's own folder of packages, which the processes it starts use as well."""
    place = str(root())
    sys.path.insert(0, place)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH", ""))))
    if len(sys.argv) > 1:
        from engine.__main__ import run

        run()
    else:
        from components.serve import main as serve

        serve()


if __name__ == "__main__":
    main()
