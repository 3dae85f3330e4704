"""Compute the table of docs/scale.md from the growth measured in bench/RESULTS.md: `python -m bench.arithmetic`."""

from __future__ import annotations

import re
from pathlib import Path

from bench.instruments import section, table_with
from bench.results import RESULTS, write_section

PAGE = RESULTS.parent.parent / "docs" / "scale.md"
SIZES = (1, 10, 21, 100)  # million passages; 21 is wiki_dpr


def number(cell: str) -> float:
    """The number of a cell such as "2.90 GB" or "1,000,000"."""
    return float(re.sub(r"[^\d.]", "", cell))


def slopes(results: str) -> dict[str, float]:
    """Growth per million passages, from the smallest and the largest size measured."""
    rows = table_with("on disk", section("scale", results))
    first, last = rows[0], rows[-1]
    millions = (number(last["passages"]) - number(first["passages"])) / 1e6
    columns = ("peak, with search", "on disk", "ingest, processor s", "BM25, processor s")
    return {name: (number(last[name]) - number(first[name])) / millions for name in columns}


def table(results: str) -> str:
    """The table of the page."""
    found = slopes(results)
    largest = number(table_with("on disk", section("scale", results))[-1]["passages"])
    hours = (found["ingest, processor s"] + found["BM25, processor s"]) / 3600
    lines = [
        f"| {size} | {found['on disk'] * size:,.0f} | {found['peak, with search'] * size:,.0f} | {hours * size:.1f} |"
        for size in SIZES
    ]
    return "\n".join(
        (
            "Each further million passages (384 dimensions) takes"
            f" {found['on disk']:.2f} GB of disk, {found['peak, with search']:.2f} GB of memory and"
            f" {hours * 60:.1f} minutes of one processor, without embedding. In a straight line, beyond the base:",
            "",
            "| million passages | disk, GB | memory, GB | hours of one processor |",
            "| ---: | ---: | ---: | ---: |",
            *lines,
            "",
            f"Arithmetic, not measurement: the largest size that was measured is {largest / 1e6:.0f} million.",
        )
    )


if __name__ == "__main__":
    write_section("arithmetic", table(Path(RESULTS).read_text(encoding="utf-8")), PAGE)
