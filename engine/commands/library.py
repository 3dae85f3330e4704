"""cases, report, export, import, delete, restore."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from engine.cases.case_file import write_case_file
from engine.cases.importers import LAYOUTS, Layout, read_cases
from engine.cases.query import SORTS, Query
from engine.cases.review import STATUSES, Mark, signing_key
from engine.cases.store import new_case_id
from engine.commands.shared import Record, each, emit, main, workbench
from engine.core.errors import InputError, StorageError, raised_as
from engine.core.values import Case
from engine.report.build import html_report, markdown_report
from engine.report.facts_table import facts_csv

case_argument = click.argument("case")
cases_argument = partial(click.argument, "cases", nargs=-1, metavar="CASE...")


@main.command()
@click.argument("search", default="")
@click.option("--tag", help="Only cases with this tag.")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--model", help="Only cases written by this model.")
@click.option("--corpus", help="Only cases of this corpus.")
@click.option("--since", metavar="DAY", help="Changed on or after this day (2026-11-20).")
@click.option("--until", metavar="DAY", help="Changed on or before this day.")
@click.option("--sort", type=click.Choice(SORTS), default="updated", show_default=True)
@click.option("--ascending", is_flag=True)
@click.option("--deleted", is_flag=True, help="List the cases in the bin instead.")
@click.option("--limit", type=click.IntRange(min=1), default=200, show_default=True)
def cases(search: str, **options: Any) -> None:
    """List the cases of the library, last changed first; every word of SEARCH must match.

    Example: python -m engine cases recrystallized --status open --sort created
    """
    for row in workbench().cases.rows(Query(text=search, **options)):
        emit(row)


@main.command()
@case_argument
@click.option("--html", "html", type=click.Path(path_type=Path), help="Write one self-contained HTML file.")
@click.option("--md", "markdown", type=click.Path(path_type=Path), help="Write Markdown.")
@click.option("--json", "as_json", type=click.Path(path_type=Path), help="Write the case file.")
def report(case: str, html: Path | None, markdown: Path | None, as_json: Path | None) -> None:
    """Write the report of a case; "-" is standard output.

    Example: python -m engine report 3f9c0a417b2e --html answer.html
    """
    found, history = workbench().cases.load_whole(case)
    key = signing_key()
    if html is None and markdown is None and as_json is None:
        raise click.UsageError("Give a file: --html OUT, --md OUT or --json OUT.")
    for path, written in ((html, html_report), (markdown, markdown_report)):
        if path is not None:
            _write_file(path, written(found, history, key).encode())
    if as_json is not None:
        _write_file(as_json, write_case_file(found, history))


def _write_file(path: Path, data: bytes) -> None:
    if str(path) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    with raised_as(StorageError, f"{path} could not be written", "Choose another place.", OSError):
        path.write_bytes(data)
    emit({"written": str(path), "bytes": len(data)})


@main.command()
@cases_argument()
@click.option("--matching", metavar="SEARCH", help="All cases that match the search.")
@click.option("--all", "everything", is_flag=True, help="The whole library.")
@click.option("--facts", is_flag=True, help="Write a CSV table of their facts, one line per fact.")
def export(cases: tuple[str, ...], matching: str | None, everything: bool, facts: bool) -> None:
    """Write case files to standard output, one line per case.

    Examples: python -m engine export 3f9c0a417b2e > case.json; python -m
    engine export --all --facts > facts.csv
    """
    store = workbench().cases
    ids = list(cases)
    if matching is not None or everything:
        ids += [row.id for row in store.rows(Query(text=matching or "", limit=1_000_000))]
    if not ids and matching is None and not everything:
        raise click.UsageError("Give a case, or use --matching SEARCH or --all.")
    if not ids:
        raise InputError("Nothing was found. List the cases of the library with `cases`.")
    if facts:
        _write_file(Path("-"), facts_csv(map(store.load_whole, dict.fromkeys(ids))))
        return

    def write(case_id: str, case: str) -> list[Record]:
        _write_file(Path("-"), write_case_file(*store.load_whole(case_id)))
        return []

    each(_once(ids), write)


def _once(ids: Iterable[str]) -> list[tuple[str, str]]:
    return [(case_id, case_id) for case_id in dict.fromkeys(ids)]


@main.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--layout", type=click.Choice(LAYOUTS), help="Layout of the file.  [default: by its field names]")
@click.option("--sources", type=click.File("rb"), help="RAGTruth's source_info.jsonl, for its response.jsonl.")
@click.option("--replace", is_flag=True, help="Replace a case of the same id that differs.")
@click.option("--copy", is_flag=True, help="Give every case a new id; its review history is not imported.")
def import_(file: BinaryIO, layout: Layout | None, sources: BinaryIO | None, replace: bool, copy: bool) -> None:
    """Import case files, or answers from other systems: own JSONL, ALCE, GaRAGe, RAGTruth.

    An invalid case file is refused; the error names the wrong place.

    Example: python -m engine import case.json
    """
    store = workbench().cases

    def put(identity: str, found: tuple[Case, tuple[Mark, ...]]) -> list[Record]:
        case, history = found
        if copy:
            case, history = msgspec.structs.replace(case, id=new_case_id(), parent=case.id), ()
        store.put(case, history, replace=replace)
        counts = {"passages": len(case.passages), "entries": len(history)}
        return [{"id": identity, "case": case.id, "question": case.question, **counts}]

    each(read_cases(file.read(), layout, sources.read() if sources else None, getattr(file, "name", "")), put)


@main.command()
@cases_argument(required=True)
def delete(cases: tuple[str, ...]) -> None:
    """Put cases into the bin; `restore` brings them back.

    Example: python -m engine delete 3f9c0a417b2e
    """
    store = workbench().cases

    def put_away(case_id: str, _: str) -> list[Record]:
        store.delete(case_id)
        return [{"deleted": case_id}]

    each(_once(cases), put_away)


@main.command()
@cases_argument(required=True)
def restore(cases: tuple[str, ...]) -> None:
    """Bring cases back from the bin.

    Example: python -m engine restore 3f9c0a417b2e
    """
    store = workbench().cases
    each(_once(cases), lambda case_id, case: [{"restored": store.restore(case_id).id}])
