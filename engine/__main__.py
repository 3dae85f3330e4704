"""`python -m engine COMMAND`: what the pages do, for scripts."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command; Ctrl-C while the modules are read ends quietly, as it does later."""
    try:
        from engine.commands import main
    except KeyboardInterrupt:
        sys.exit(130)
    main()


if __name__ == "__main__":
    run()
