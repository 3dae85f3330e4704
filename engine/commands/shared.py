"""Common parts of all commands: errors to exit codes, records in, records out, progress to standard error."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import wraps
from io import TextIOBase
from itertools import chain, islice
from typing import Any, TypeVar

import click
import msgspec

from engine.cases.exports import audit_record, is_export
from engine.core.errors import GroundworkError, RecordError
from engine.core.files import EMBEDDED, VERSION
from engine.core.progress import Watch
from engine.core.settings import PAPERS, Settings
from engine.core.values import AuditRecord, Hit, T, Value, read_jsonl
from engine.models.defaults import AUTO, default_notes
from engine.workbench import Workbench

V = TypeVar("V", bound=Value)
Record = dict[str, Any]
GROUP = 64  # records that are looked at together
# A line that is not UTF-8 is told in its place.
jsonl_file = click.File("r", encoding="utf-8", errors="surrogateescape")
file_argument = click.argument("file", type=jsonl_file)
corpus_option = click.option("--corpus", required=True, metavar="NAME", help="The corpus to use.")
document_option = click.option(
    "--document",
    "documents",
    multiple=True,
    metavar="NAME",
    help="Search this document only; may be given several times. * means any part of a name.",
)
seed_option = click.option("--seed", type=int, default=None, help="Seed for all sampling.")
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="STAGE.FIELD=VALUE",
    help=f"Change a setting, or use all of a paper's: paper={'|'.join(PAPERS)}.",
)


def _named(context: click.Context, option: click.Parameter, name: str) -> str:
    """The name as given; `auto` tells where a default is not the one that the user chose."""
    for note in default_notes() if name == AUTO else ():
        click.echo(note, err=True)
    return name


model_option = click.option(
    "--model",
    default=AUTO,
    show_default=True,
    callback=_named,
    help="auto (the defaults of Settings), reader, embedded, an id, a URL.",
)
verifier_option = click.option(
    "--verifier",
    default=EMBEDDED,
    show_default=True,
    help="embedded, medium, large, calibrated:NAME, an NLI model's id or folder, or lm:MODEL.",
)


class GroundworkGroup(click.Group):
    """A group whose commands turn the engine's errors into one sentence and exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except GroundworkError as error:
            click.echo(f"{type(error).__name__}: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("Stopped. Every line written so far is complete.", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            _close_output()  # the reader has gone (`| head`): quietly, as other tools do
            ctx.exit(0)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            click.echo(f"The output cannot be written ({error.strerror}). Free some space and run again.", err=True)
            _close_output()
            ctx.exit(2)


def _close_output() -> None:
    """Let standard output lead nowhere: what waits to be written would fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=GroundworkGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="Groundwork")
def main() -> None:
    """Ask questions of documents and audit answers: see why an answer was written and whether it stands.

    All data is in one folder: GROUNDWORK_HOME, by default the platform's folder for user data.
    GROUNDWORK_MODELS names another folder for model weights.
    """


def emit(value: Any) -> None:
    """Write one JSON line at once."""
    line = msgspec.json.encode(value).decode("utf-8", "replace")
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def workbench(assignments: Iterable[str] = (), seed: int | None = None) -> Workbench:
    """A workbench on the data folder, with `--set` and `--seed` applied to its settings."""
    seeds = [] if seed is None else [f"{stage}.seed={seed}" for stage in ("decoding", "occlusion", "faithfulness")]
    return Workbench(settings=Settings().apply([*seeds, *assignments]))


def with_workbench(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `bench`: the workbench with its --seed and --set."""

    @seed_option
    @set_option
    @wraps(command)
    def run(seed: int | None, assignments: tuple[str, ...], **options: Any) -> None:
        command(bench=workbench(assignments, seed), **options)

    return run


def progress() -> Watch:
    """A watch that reports to standard error."""
    say = speaker()
    return Watch(report=lambda stage, done, total: say(f"{stage} {done:,}/{total:,}" if total else stage))


def speaker() -> Callable[[str], None]:
    """Says lines on standard error: on a terminal each in the last one's place, otherwise one a minute."""
    said, spoke = "", time.monotonic()

    def say(line: str) -> None:
        nonlocal said, spoke
        if sys.stderr.isatty() and line != said:
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
        elif time.monotonic() - spoke >= 60:
            spoke = time.monotonic()
            click.echo(line, err=True)
        said = line

    return say


def hit_row(hit: Hit, score: float) -> Record:
    """A passage that was found, with the score that ordered it; for `steps` that is the cosine which T is held to."""
    passage, kept = hit.passage, ("document", "start", "end")
    places = {name: getattr(passage, name) for name in kept}
    return {"passage": passage.id, **places, "score": score, "text": passage.text}


def good_records(lines: Iterable[str]) -> Iterator[AuditRecord]:
    """The records that can be read; the others are reported where they stand."""
    for _, data in read_jsonl(lines):
        if isinstance(data, dict):
            try:
                yield record_of(AuditRecord, data)
            except GroundworkError:
                continue


def record_of(kind: type[V], data: Record) -> V:
    """The record of a line; one with question, passages and answer may have another system's names for them."""
    if {"question", "passages", "answer"} <= set(kind.__struct_fields__) and is_export(data):
        data = audit_record(data).to_dict()
    return kind.from_dict(data)


def run_records(
    lines: Iterable[str],
    kind: type[V],
    work: Callable[[V], Iterable[Record]],
    close: Callable[[], None] | None = None,
    ahead: Callable[[Sequence[V]], object] | None = None,
) -> None:
    """Apply `work` to every record of a JSONL file's lines, as `each` does; `close` writes the summary at the end.

    Fields of other names are passed over. One that looks like a misspelt field is told once. `ahead` is given the
    records of a file in groups, each before its first record is worked on; of a pipe each line is answered at once.
    """
    told: set[str] = set()

    def read(identity: str, data: Record) -> V | GroundworkError:
        absent = [field for field in kind.__struct_fields__ if field not in data]
        for name in data:
            if name in kind.__struct_fields__ or name in told:
                continue
            if near := get_close_matches(name, absent, n=1, cutoff=0.75):
                told.add(name)
                click.echo(f"Record {identity}: the field {name!r} is not read. Is it {near[0]!r}?", err=True)
        try:
            return record_of(kind, data)
        except GroundworkError as error:
            return error

    items = ((name, data if isinstance(data, RecordError) else read(name, data)) for name, data in read_jsonl(lines))
    whole = isinstance(lines, TextIOBase) and lines.seekable()
    each(_looked_at(items, ahead) if ahead and whole else items, lambda _, record: work(record), close)


def _looked_at(
    items: Iterator[tuple[str, V | GroundworkError]], ahead: Callable[[Sequence[V]], object]
) -> Iterator[tuple[str, V | GroundworkError]]:
    """The items, in groups of which `ahead` has seen the records."""
    while group := list(islice(items, GROUP)):
        with suppress(GroundworkError):  # told in the place of the record that it is of
            ahead([record for _, record in group if not isinstance(record, GroundworkError)])
        yield from group


def failure(error: GroundworkError) -> Record:
    """The part of a line that tells an error."""
    return {"error": {"type": type(error).__name__, "message": str(error)}}


def each(
    items: Iterable[tuple[str, T | GroundworkError]],
    work: Callable[[str, T], Iterable[Record]],
    close: Callable[[], None] | None = None,
) -> None:
    """Write what `work` makes of each (id, item), then `close`; a bad one gives an error in its place, and status 1.

    `work` may also yield a `failure` of a part, and the other parts after it. Without any item the first is a bad one.
    """
    failed, found = False, iter(items)
    first = next(found, ("1", RecordError("The file has no records. Check that it was saved completely.")))
    for identity, item in chain([first], found):
        try:
            if isinstance(item, GroundworkError):
                raise item
            for record in work(identity, item):
                failed |= "error" in record
                emit(record)
        except GroundworkError as error:
            failed = True
            emit({"id": identity, **failure(error)})
    if close is not None:
        close()
    if failed:
        sys.exit(1)
