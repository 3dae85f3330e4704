"""Write bench/RESULTS.md: one marked section per bench. A bench replaces its own section only."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")
HEADER = "# Benchmark results\n\nWritten by `make bench`. Each section says what ran and on which data.\n"


def write_section(name: str, markdown: str, path: Path = RESULTS) -> None:
    """Replace the section between the markers of `name`, or add it at the end."""
    text = path.read_text(encoding="utf-8") if path.exists() else HEADER
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = f"{start}\n{markdown.strip()}\n{end}"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    added = f"{text.rstrip()}\n\n{section}\n"
    path.write_text(pattern.sub(lambda _: section, text) if pattern.search(text) else added, encoding="utf-8")


def conditions(**extra: object) -> str:
    """Return one line: date, Python, main packages, number of CPU cores, and what the bench adds."""
    known = {name: version(name) for name in ("torch", "transformers")}
    parts = [
        datetime.now(UTC).date().isoformat(),
        f"Python {platform.python_version()}",
        *(f"{name} {value}" for name, value in known.items()),
        f"{os.cpu_count()} CPU cores",
        *(f"{name} {value}" for name, value in extra.items()),
    ]
    return ", ".join(parts) + "."
