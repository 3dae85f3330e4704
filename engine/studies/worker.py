"""A worker process: `python -m engine.studies.worker`, tasks in as JSON lines, outcomes out as JSON lines.

The first line is the config. Whatever libraries print goes to standard error, so that standard output holds outcomes
and nothing else. It ends when its input does: a parent that was killed leaves no worker behind.
"""

from __future__ import annotations

import os
import sys

import msgspec

from engine.core.values import decoded
from engine.studies.config import Config
from engine.studies.perform import Performer, UnitTask


def main() -> None:
    """Serve tasks until the input ends."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    lines = sys.stdin.buffer
    performer = Performer(decoded(lines.readline(), Config))
    for line in lines:
        task = decoded(line, UnitTask)
        performer.tools.allow(task.allowance)
        out.write(msgspec.json.encode(performer.perform(task)) + b"\n")


if __name__ == "__main__":
    main()
