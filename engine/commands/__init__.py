"""The command line, built on click: one file a group of commands, one contract for all of them.

Results are JSONL on standard output in input order, messages go to standard error. Exit status 0: all good;
1: some records failed; 2: the call itself was wrong.
"""

from __future__ import annotations

from engine.commands import analyses, answers, corpora, evaluate, library, models, refine, review, steps, verify
from engine.commands.shared import main

__all__ = ["main"]
FILES = (analyses, answers, corpora, evaluate, library, models, refine, review, steps, verify)
"""Each added its commands to `main` when it was imported."""
