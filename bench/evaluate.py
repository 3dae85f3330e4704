"""Every study in its small preset: `make bench-evaluate`, or python -m bench.evaluate [--only NAME ...] [--write].

Each runs on the sample worlds with the embedded model, in a data folder of its own, and has a section of its own in
bench/RESULTS.md with the tables as `evaluate` prints them. Figures of a small preset show that a study runs and what
its tables look like; n is far too small to say which method is better.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from bench.results import conditions, write_section

LONG = ("similarities_by_question",)  # tables with a block a question: they are in the run's folder


def main() -> None:
    """Run, print, and with --write keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=None, metavar="PRESET", help="these presets alone")
    parser.add_argument("--out", type=Path, default=None, help="keep the runs' folders here")
    parser.add_argument("--write", action="store_true", help="write the sections of bench/RESULTS.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GROUNDWORK_HOME", folder)
        for name in given.only or small():
            text = section(name, (given.out or Path(folder)) / name)
            print(text, flush=True)
            if given.write:
                write_section(f"evaluate {name}", text)


def small() -> list[str]:
    """The presets that are neither a paper's nor the one of seconds."""
    from engine.evaluate.config import presets

    return [name for name in presets() if name != "seconds" and not name.endswith("_paper")]


def section(name: str, folder: Path) -> str:
    """One study: what ran, how long it took, its tables."""
    from engine.evaluate.config import CONFIGS
    from engine.evaluate.evaluate import evaluate, report_head
    from engine.evaluate.tables import to_markdown

    start, spent = time.perf_counter(), time.process_time()
    found = evaluate((CONFIGS / f"{name}.toml").read_text(encoding="utf-8"), folder, resume=folder.exists())
    took = f"{time.perf_counter() - start:.0f} s by the clock, {time.process_time() - spent:.0f} s of processor time"
    tables = [to_markdown(table) for table in found.results.tables if table.name not in LONG]
    head = report_head(found).replace("# ", "## Evaluate: ", 1)
    return "\n".join([head, f"{conditions(model=found.config.model)} {took}.", "", *tables])


if __name__ == "__main__":
    main()
