"""docs/findings.md from the rows of runs: python -m bench.findings_page [--runs FOLDER].

    python -m bench.findings_page ship --from runs --name NAME ...   # rows of runs into assets/evaluations
    python -m bench.findings_page draw                               # the page and its figures from those rows

The template findings.in.md is in this folder. Its parts in double braces are filled from the rows:

    {{about RUN}}                      model, data, questions, seeds, rows, failures
    {{table RUN TABLE}}                a table that the study draws
    {{compare RUN OTHER VALUE ...}}    two runs of a study compared in these values
    {{figure RUN FIGURE}}              a figure, drawn by Plotly and saved as SVG
    {{cell RUN TABLE "ROW" "COLUMN"}}  one cell, with its interval; ROW is the line's first cell or cells, "a / b"

A + joins the names of runs that cover different methods of one study. An interrupted run is shipped with the questions
that all its methods have answered.
"""

from __future__ import annotations

import argparse
import lzma
import re
import shlex
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from engine.core.values import decoded
from engine.report.markdown import one_line
from engine.studies.catalogue import study_of
from engine.studies.config import parse_config
from engine.studies.evaluate import Evaluation, RunManifest, compare_runs, opened
from engine.studies.library import CASES, SHIPPED
from engine.studies.plan import scaled
from engine.studies.run import Journal
from engine.studies.tables import rounded, to_markdown
from engine.studies.values import Row, StudyTable, Unit

HERE = Path(__file__).parent
TEMPLATE, PAGE = HERE / "findings.in.md", HERE.parent / "docs" / "findings.md"
IMAGES = HERE.parent / "docs" / "images" / "findings"
ASKED = re.compile(r"\{\{(.+?)\}\}")
OUTSIDE = re.compile(r'^data = "/.*?([^/"]+/[^/"]+)"$', re.MULTILINE)  # a public set, by its folder and file
TEXTS = ("evidence", "revised")  # values of a row that hold words of a data set
WIDTH, HEIGHT = 820, 400


def main() -> None:
    """Ship rows, or draw the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ship", "draw"])
    parser.add_argument("--from", dest="source", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--name", nargs="*", default=None, help="only these runs")
    parser.add_argument("--cases", nargs="*", default=(), help="runs whose cases are shipped too")
    parser.add_argument("--runs", type=Path, default=SHIPPED, help="folder of the rows")
    given = parser.parse_args()
    if given.what == "ship":
        for folder in sorted(path.parent for path in given.source.glob("*/run.json")):
            if given.name is None or folder.name in given.name:
                print(folder.name, ship(folder, SHIPPED / folder.name, folder.name in given.cases))
    else:
        PAGE.write_text(page(TEMPLATE.read_text(encoding="utf-8"), given.runs), encoding="utf-8")


# Rows that come with the workbench.


def ship(folder: Path, target: Path, cases: bool) -> str:
    """Copy a run's complete questions: config, manifest, rows, cases on request. Return their number in words."""
    manifest = decoded((folder / "run.json").read_bytes(), RunManifest)
    rows = {row.unit: row for row in Journal(folder).rows()}
    ended = {unit for unit, row in rows.items() if not short_of_memory(row)}
    units = whole(manifest.units, ended)
    if not units:
        return "no question is whole"
    target.mkdir(parents=True, exist_ok=True)
    given = (folder / "config.toml").read_text(encoding="utf-8")
    text = OUTSIDE.sub(r'data = "data/\1"', given)
    place, data = parse_config(given).data, parse_config(text).data
    public, departures = "/" in data, tuple(said.replace(place, data) for said in manifest.departures)
    there = {path.stem for path in folder.glob("cases/*.json")} if cases else set()
    kept = [bare(rows[unit], public, there) for unit in units]
    (target / "config.toml").write_text(text, encoding="utf-8")
    cost = scaled(manifest.cost, len(units) / len(manifest.units))
    shipped = msgspec.structs.replace(manifest, units=units, departures=departures, cost=cost)
    (target / "run.json").write_bytes(msgspec.json.encode(shipped) + b"\n")
    rows_of = b"".join(msgspec.json.encode(row) + b"\n" for row in kept)
    Journal(target).packed.write_bytes(lzma.compress(rows_of))
    if cases:
        with tarfile.open(target / CASES, "w:xz") as archive:
            for row in kept:
                if row.case:
                    archive.addfile(*member(folder / "cases" / f"{row.case}.json"))
    return f"{len({unit.example for unit in units})} questions, {len(units)} of {len(manifest.units)} units"


def member(file: Path) -> tuple[tarfile.TarInfo, BytesIO]:
    """A file as a member without owner and time, so that an archive changes only with its files."""
    data = file.read_bytes()
    named = tarfile.TarInfo(file.name)
    named.size = len(data)
    return named, BytesIO(data)


def short_of_memory(row: Row) -> bool:
    """Whether a unit ran out of memory: a limit of the machine, not of the method."""
    said = row.failure.message if row.failure else ""
    return any(words in said for words in ("out of memory", "into memory", "ALLOC_FAILED"))


def whole(units: tuple[Unit, ...], ended: set[Unit]) -> tuple[Unit, ...]:
    """The units of the questions, by seed, that every method has completed; methods without one are left out."""
    run = {unit.method for unit in ended}
    asked = tuple(unit for unit in units if unit.method in run)
    missing = {(unit.example, unit.seed) for unit in asked if unit not in ended}
    return tuple(unit for unit in asked if (unit.example, unit.seed) not in missing)


def bare(row: Row, public: bool, cases: set[str]) -> Row:
    """The row without words of a public data set or an unshipped case, its numbers with six digits."""
    values = {name: short(value) for name, value in row.values.items() if not (public and name in TEXTS)}
    return msgspec.structs.replace(row, values=values, case=row.case if row.case in cases else "")


def short(value: Any) -> Any:
    """A value of JSON, its numbers with six significant digits.

    >>> short({"a": [0.123456789, 1, None]})
    {'a': [0.123457, 1, None]}
    """
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: short(one) for name, one in value.items()}
    return [short(one) for one in value] if isinstance(value, list) else value


# The page.


def page(text: str, runs: Path) -> str:
    """The template with everything in braces filled."""
    known: dict[str, Evaluation] = {}

    def fill(match: re.Match[str]) -> str:
        kind, names, *rest = shlex.split(match[1])
        if kind == "compare":
            return compared(known_run(names), known_run(rest[0]), rest[1:])
        filled: str = FILLS[kind](known_run(names), names, *rest)
        return filled

    def known_run(names: str) -> Evaluation:
        if names not in known:
            known[names] = joined([opened(runs / name) for name in names.split("+")])
        return known[names]

    return ASKED.sub(fill, text)


def compared(first: Evaluation, second: Evaluation, values: list[str]) -> str:
    """The values that both runs measured, over their common questions."""
    table = compare_runs(first, second)
    rows = tuple(row for row in table.rows if row[1] in values)
    return to_markdown(msgspec.structs.replace(table, rows=rows)).rstrip()


def joined(runs: list[Evaluation]) -> Evaluation:
    """Runs of one study and data set with different methods, merged over their common questions."""
    first, *others = runs
    if not others:
        return first
    shared = set.intersection(*({row.unit.example for row in run.rows} for run in runs))
    rows = tuple(row for run in runs for row in run.rows if row.unit.example in shared)
    methods = study_of(first.config.study).methods
    rows = tuple(sorted(rows, key=lambda row: methods.index(row.unit.method)))
    results = study_of(first.config.study).results(first.config, rows)
    return msgspec.structs.replace(first, rows=rows, results=results)


def about(run: Evaluation, names: str) -> str:
    """Model, data, questions, seeds, rows and failures of a run in one line."""
    config = run.config
    questions, failed = len({row.unit.example for row in run.rows}), len(run.failures)
    data = Path(config.data).parent.name if "/" in config.data else config.data
    judge = f", judge {config.judge}" if config.judge else ""
    folders = ", ".join(f"`{name}`" for name in names.split("+"))
    return (
        f"*{folders}: {one_line(config.model)} on {one_line(data)}{judge}; {questions} questions, {len(run.rows)} rows,"
        f" {failed} failed, {sum(row.unparsed for row in run.rows)} unreadable replies.*"
    )


def table_of(run: Evaluation, name: str) -> StudyTable:
    """The table of that name; raise a `KeyError` that lists the known names."""
    found = {table.name: table for table in run.results.tables}
    if name not in found:
        raise KeyError(f"{name!r} is none of {', '.join(found)}")
    return found[name]


def table(run: Evaluation, names: str, name: str) -> str:
    """A table in Markdown."""
    return to_markdown(table_of(run, name)).rstrip()


def cell(run: Evaluation, names: str, name: str, line: str, column: str) -> str:
    """One cell, rounded, with its interval."""
    found = table_of(run, name)
    place = [one.name for one in found.columns].index(column)
    keys = line.split(" / ")
    matching = [row for row in found.rows if [str(one) for one in row[: len(keys)]] == keys]
    if len(matching) != 1:
        raise KeyError(f"{line!r} is {len(matching)} lines of {name}: {[row[0] for row in found.rows]}")
    return rounded(matching[0][place])


def figure(run: Evaluation, names: str, name: str) -> str:
    """Save a figure as a picture; return the Markdown that shows it."""
    from components.figures import drawn

    found = {one.name: one for one in run.results.figures}
    if name not in found:
        raise KeyError(f"{name!r} is none of {', '.join(found)}")
    file = IMAGES / f"{names.replace('+', '-and-')}-{name.replace('_', '-')}.svg"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(svg(drawn(found[name])), encoding="utf-8")
    title = one_line(found[name].title)
    return f"**{title}**\n\n![{title}](images/findings/{file.name})"


def svg(chart: Any) -> str:
    """The SVG of a Plotly figure, drawn by Plotly's script in an offline browser."""
    import plotly
    from playwright.sync_api import sync_playwright

    from bench.recolour import CHROMIUM

    chart.update_layout(template="plotly_white", margin={"l": 60, "r": 20, "t": 50, "b": 60})
    script = Path(plotly.__file__).with_name("package_data") / "plotly.min.js"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_content("<div id='chart'></div>")
        tab.add_script_tag(path=str(script))
        address = tab.evaluate(
            "([chart, width, height]) => Plotly.toImage(JSON.parse(chart), {format: 'svg', width, height})",
            [chart.to_json(), WIDTH, HEIGHT],
        )
        browser.close()

    return stable(unquote(str(address).partition(",")[2]))


def stable(text: str) -> str:
    """The SVG with Plotly's random names replaced, so a picture changes only with its data.

    >>> stable('<clipPath id="clip1a2b3cxy"/><g clip-path="url(#clip1a2b3cxy)"/><defs id="defs-1a2b3c"/>')
    '<clipPath id="clip0xy"/><g clip-path="url(#clip0xy)"/><defs id="defs-0"/>'
    >>> stable('<g class="trace bars trace84d8b0"/>')
    '<g class="trace bars trace0"/>'
    """
    found = re.search(r'id="defs-([0-9a-f]{6})"', text)
    text = text.replace(found[1], "0") if found else text
    return re.sub(r"\btrace[0-9a-f]{6}\b", "trace0", text)


FILLS: dict[str, Any] = {"about": about, "table": table, "cell": cell, "figure": figure}


if __name__ == "__main__":
    main()
