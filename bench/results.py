"""Start a bench, tabulate its figures, and write its section of bench/RESULTS.md. A bench replaces its own alone."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("RESULTS.md")
HEADER = "# Benchmark results\n\nWritten by `make bench`. Each section says what ran and on which data.\n"
DATA = (Path, "folder of the public sets")  # the flag of benches that need them


def arguments(doc: str | None, **flags: Any) -> argparse.Namespace:
    """Read a bench's command line: --write, and its own flags by name.

    A flag is (default, help) and has the default's type. False makes a switch, a list takes several values, and a type
    as the default makes the flag required. A dictionary goes to argparse as it is.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.setdefault("write", (False, "write the section of bench/RESULTS.md"))
    for name, flag in flags.items():
        if not isinstance(flag, dict):
            default, told = flag
            kind = {"type": type(default), "default": default}
            if default is False:
                kind = {"action": "store_true"}
            elif isinstance(default, list):
                kind = {"nargs": "*", "default": default}
            elif isinstance(default, type):
                kind = {"type": default, "required": True}
            flag = {"help": told, **kind}
        parser.add_argument(f"--{name}", **flag)
    return parser.parse_args()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the records of a JSONL file; blank lines are skipped."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def table(heads: str, rows: Iterable[str | Iterable[object]], rule: str = "---") -> Iterator[str]:
    """Yield the lines of a Markdown table, with `rule` in each cell below the heads. A row is its cells, joined or not.

    >>> list(table("set | n", [("CNN", 5), "XSum | 7"]))
    ['| set | n |', '|---|---|', '| CNN | 5 |', '| XSum | 7 |']
    """
    yield f"| {heads} |"
    yield "|" + f"{rule}|" * (heads.count(" | ") + 1)
    for row in rows:
        yield f"| {row if isinstance(row, str) else ' | '.join(map(str, row))} |"


def publish(asked: argparse.Namespace, name: str, title: str, told: str, lines: Iterable[str]) -> None:
    """Print a section line by line, as its figures come, and with --write save it under `name`."""
    section = []
    for line in chain([f"## {title}\n\n{told}\n"], lines):
        print(line, flush=True)
        section.append(line)
    if asked.write:
        write_section(name, "\n".join(section))


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
