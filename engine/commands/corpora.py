"""ingest, corpora, search."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import click
import msgspec

from engine.commands import shared
from engine.core.errors import CorpusError, InputError
from engine.core.settings import Settings
from engine.core.text import well_formed
from engine.core.values import Value
from engine.corpus.collection import Collection, Health, health, list_corpora, remove, unreadable_corpora
from engine.corpus.formats.records import Fields
from engine.models.embedder import full_name, load_embedder
from engine.retrieve.search import rerank_hits, search as search_passages

chunking_option = click.option(
    "--chunking", type=click.Choice(["sentences", "words", "headings"]), default=None, help="How to split documents."
)
embedder_option = click.option(
    "--embedder",
    metavar="NAME",
    default=None,
    help="A name that `models` lists, an id, a folder, or towers:QUESTION,PASSAGE.",
)


@shared.main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@shared.corpus_option
@chunking_option
@click.option("--fields", default="", metavar="id=F,title=F,text=F", help="Fields of records; id= numbers them.")
@embedder_option
@click.option("--on", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="Who embeds.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Ray workers that embed.")
@shared.set_option
def ingest(
    paths: tuple[Path, ...],
    corpus: str,
    chunking: str | None,
    fields: str,
    embedder: str | None,
    on: str,
    workers: int,
    assignments: tuple[str, ...],
) -> None:
    """Add files and folders to a corpus.

    A file of the same name, or a record of the same id, is a new version and replaces the document that the corpus has:
    `replacements` says which, and by which file, `displaced` whose it was if another file's. Rows that a file no
    longer has are removed. Records of JSONL with an id stay, and `stayed` counts them. A folder's files are named by
    their place in it.

    Example: python -m engine ingest reports/ notes.md --corpus field-notes
    """
    bench = shared.workbench([*assignments, *_chosen({"chunking.method": chunking, "retrieval.embedder": embedder})])
    report = bench.ingest(paths, corpus, shared.progress(), _fields(fields), ray_workers=workers if on == "ray" else 0)
    shared.emit(report)
    if report.warning:
        click.echo(report.warning, err=True)
    if report.skipped:
        sys.exit(1)


def _chosen(chosen: Mapping[str, object]) -> list[str]:
    """The options that were given, as settings; they come after --set, so that a paper does not undo them."""
    return [f"{path}={value}" for path, value in chosen.items() if value is not None]


def _fields(text: str) -> Fields | None:
    """`id=key,title=name,text=body` as a field mapping; None where nothing is mapped. The id alone may be empty."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    mapping = {name.strip(): field.strip() for name, _, field in pairs}
    whole = all(mark and (field.strip() or name.strip() == "id") for name, mark, field in pairs)
    if not mapping.keys() <= {"id", "title", "text"} or not whole:
        raise InputError(f"--fields {text!r} is not a mapping. Write for example id=key,title=name,text=body.")
    return Fields(**mapping) if mapping else None


@shared.main.group(invoke_without_command=True)
@click.pass_context
def corpora(ctx: click.Context) -> None:
    """List the corpora, embed one again, or remove one.

    Example: python -m engine corpora remove field-notes
    """
    if ctx.invoked_subcommand is not None:
        return
    kept = ("name", "documents", "passages", "embedder", "chunking", "changed")
    for corpus in list_corpora():
        try:
            found = health(corpus.name, shared.progress())
        except (CorpusError, InputError) as error:  # removed since, or its folder has a name that a corpus cannot have
            found = Health(state="damaged", notes=(str(error),))
        shared.emit({**{key: getattr(corpus, key) for key in kept}, "health": found.state, "notes": found.notes})
    for name, problem in unreadable_corpora().items():
        shared.emit({**dict.fromkeys(kept), "name": name, "health": "damaged", "notes": [problem]})


@corpora.command("remove")
@click.argument("name")
def corpora_remove(name: str) -> None:
    """Remove a corpus and its index; cases keep their passages.

    Example: python -m engine corpora remove field-notes
    """
    remove(name)
    shared.emit({"removed": name})


@corpora.command("rebuild")
@click.argument("name")
@chunking_option
@embedder_option
@shared.set_option
def corpora_rebuild(name: str, chunking: str | None, embedder: str | None, assignments: tuple[str, ...]) -> None:
    """Split and embed a corpus's documents again; other settings stay. Run again to resume.

    Example: python -m engine corpora rebuild field-notes --embedder all-mpnet-base-v2
    """
    collection = Collection.open(name)
    own = {f"chunking.{field}": value for field, value in collection.chunking.to_dict().items()}
    chosen = _chosen({"chunking.method": chunking, "retrieval.embedder": embedder})
    wanted = Settings().with_values(own).apply([*assignments, *chosen])
    model = wanted.retrieval.embedder
    rebuilt = collection.rebuild(load_embedder(full_name(model)) if model else None, wanted.chunking, shared.progress())
    shared.emit(rebuilt.manifest)


class SearchRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A record of `search --queries`."""

    id: str
    text: str


@shared.main.command()
@click.argument("question", required=False)
@shared.corpus_option
@shared.document_option
@click.option("--queries", type=shared.jsonl_file, help='JSONL of {"id", "text"}.')
@click.option("-k", type=click.IntRange(min=1), default=None, help="Passages per question.  [default: 10]")
@click.option("--mode", type=click.Choice(["dense", "bm25", "hybrid"]), default=None, help="[default: hybrid]")
@click.option("--rerank", "reranked", is_flag=True, help="Re-rank retrieval.rerank_pool of them and keep k.")
@shared.set_option
def search(
    question: str | None,
    corpus: str,
    documents: tuple[str, ...],
    queries: TextIO | None,
    k: int | None,
    mode: str | None,
    reranked: bool,
    assignments: tuple[str, ...],
) -> None:
    """Find the passages of a corpus that are closest to a question.

    Example: python -m engine search "Why is the filtrate hot?" --corpus bench-chemistry -k 5
    """
    if (question is None) == (queries is None):
        raise click.UsageError("Give one question, or --queries FILE.")
    given = _chosen({"retrieval.k": k, "retrieval.mode": mode})
    bench = shared.workbench(["retrieval.k=10", "retrieval.mode=hybrid", *assignments, *given])
    collection, retrieval = bench.collection(corpus), bench.settings.retrieval
    wanted = max(retrieval.k, retrieval.rerank_pool) if reranked else retrieval.k
    pool = msgspec.structs.replace(retrieval, k=wanted, documents=documents or retrieval.documents)

    def answer(query: SearchRecord) -> list[shared.Record]:
        asked = well_formed(query.text)
        hits = search_passages(collection, asked, pool)
        if reranked:
            hits = rerank_hits(asked, hits, bench.reranker)[: retrieval.k]
        return [{"id": query.id, "hits": [shared.hit_row(hit, hit.score) for hit in hits]}]

    if queries is not None:
        shared.run_records(queries, SearchRecord, answer)
    else:
        shared.each([("1", SearchRecord(id="1", text=question or ""))], lambda identity, query: answer(query))
